// The style sheets of all modules, in the order in which they apply.

import shared from "./style.css";

export const css = [shared].join("\n");

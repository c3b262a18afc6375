// The style sheets of all modules, in the order in which they apply.

import compare from "./compare.css";
import inspector from "./inspector.css";
import shared from "./style.css";

export const css = [shared, compare, inspector].join("\n");

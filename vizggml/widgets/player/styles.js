// The style sheets of all modules, in the order in which they apply.

import block from "./block.css";
import compare from "./compare.css";
import details from "./details.css";
import graph from "./graph.css";
import inspector from "./inspector.css";
import kv from "./kv.css";
import memory from "./map.css";
import notice from "./notice.css";
import live from "./live.css";
import routing from "./routing.css";
import shared from "./style.css";
import timeline from "./timeline.css";

export const css = [shared, block, compare, details, graph, inspector, kv, memory, routing, timeline, notice, live].join("\n");

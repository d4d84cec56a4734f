import batches from "./de/batches.md";
import errors from "./de/errors.md";
import limits from "./de/limits.md";
import moving from "./de/moving.md";
import quickStart from "./de/quick-start.md";
import roles from "./de/roles.md";
import tools from "./de/tools.md";
import { createDocsPage } from "./docs.tsx";

export default createDocsPage({ batches, errors, limits, moving, "quick-start": quickStart, roles, tools });

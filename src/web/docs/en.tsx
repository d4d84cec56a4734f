import { createDocsPage } from "./docs.tsx";
import batches from "./en/batches.md";
import errors from "./en/errors.md";
import limits from "./en/limits.md";
import moving from "./en/moving.md";
import quickStart from "./en/quick-start.md";
import roles from "./en/roles.md";
import tools from "./en/tools.md";

export default createDocsPage({ batches, errors, limits, moving, "quick-start": quickStart, roles, tools });

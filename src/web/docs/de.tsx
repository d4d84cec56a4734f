import batches from "./de/batches.md";
import errors from "./de/errors.md";
import limits from "./de/limits.md";
import moving from "./de/moving.md";
import quickStart from "./de/quick-start.md";
import roles from "./de/roles.md";
import tools from "./de/tools.md";
import { createDocsPage } from "./docs.tsx";

/** The docs in German: a chunk of its own, so that nobody loads a language that he does not read. */
export default createDocsPage({ batches, errors, limits, moving, "quick-start": quickStart, roles, tools });

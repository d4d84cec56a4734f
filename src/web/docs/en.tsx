import { createDocsPage } from "./docs.tsx";
import batches from "./en/batches.md";
import errors from "./en/errors.md";
import limits from "./en/limits.md";
import moving from "./en/moving.md";
import quickStart from "./en/quick-start.md";
import roles from "./en/roles.md";
import tools from "./en/tools.md";

/** The docs in English: a chunk of its own, so that nobody loads a language that he does not read. */
export default createDocsPage({ batches, errors, limits, moving, "quick-start": quickStart, roles, tools });

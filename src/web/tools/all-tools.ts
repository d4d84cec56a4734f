import { FRAMEWORK_TOOLS } from "./framework-tools.ts";
import { SDK_TOOLS } from "./sdk-tools.ts";
import { SETTINGS_TOOLS } from "./settings-tools.ts";
import type { Tool } from "./tool.ts";

/** In the order of the pages. `bun run snippets` does what they say; its table has what came of it. */
export const TOOLS: readonly Tool[] = [...SDK_TOOLS, ...FRAMEWORK_TOOLS, ...SETTINGS_TOOLS];

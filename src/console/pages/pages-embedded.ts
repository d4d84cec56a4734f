import { bundlePages } from "./pages-bundle.ts" with { type: "macro" };

/**
 * The pages as they were when the binary was built: the macro runs then, and its result stands here. Loaded in the
 * binary alone; from source the pages are bundled when they are first asked for.
 */
export const embeddedPages: Promise<Record<string, string>> | Record<string, string> = bundlePages();

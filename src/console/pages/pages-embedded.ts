/**
 * The pages as they were when the binary was built, which writes them here (build.ts). Loaded in the binary alone; from
 * source the pages are bundled when they are first asked for.
 */
export const embeddedPages: Readonly<Record<string, string>> = {};

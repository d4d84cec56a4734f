/**
 * The pages in the binary; build.ts writes them here. Loaded in the binary only: from source the pages are bundled on
 * the first request.
 */
export const embeddedPages: Readonly<Record<string, string>> = {};

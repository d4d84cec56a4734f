/** `path` at the server's root: health endpoints stand beside `/v1`, not under it. */
export function atServerRoot(baseUrl: string, path: string): string {
	return baseUrl.replace(/\/v1$/, "") + path;
}

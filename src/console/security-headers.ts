export const PAGE_POLICY = [
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"font-src 'self'",
	"img-src 'self' data:",
	"connect-src 'self'",
	"frame-ancestors 'none'",
	"base-uri 'none'",
	"form-action 'self'",
].join("; ");

/** Content security policy of a page with one inline style and no script. `hash` is the style's hash, `sha256-…`. */
export function printPagePolicy(hash: string): string {
	return `default-src 'none'; style-src '${hash}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;
}

/** Adds the security headers to a response; headers that it already has stay. */
export function securityHeaders(response: Response, options: { requestId: string; isHttps: boolean; policy?: string }) {
	const { headers } = response;
	const add = (name: string, value: string) => {
		if (!headers.has(name)) headers.set(name, value);
	};
	add("x-request-id", options.requestId);
	add("cache-control", "no-store");
	add("x-content-type-options", "nosniff");
	add("content-security-policy", options.policy ?? "default-src 'none'; frame-ancestors 'none'");
	add("referrer-policy", "same-origin");
	add("cross-origin-opener-policy", "same-origin");
	add("cross-origin-resource-policy", "same-origin");
	add("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=()");
	if (options.isHttps) add("strict-transport-security", "max-age=31536000");
	return response;
}

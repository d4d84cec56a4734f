import { isDecodable } from "../base/environment-reader.ts";

const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/** What a variable with this address of a database must be told; undefined if nothing. `url` can be parsed. */
export function addressProblem(url: string): string | undefined {
	const { hostname, pathname, searchParams: query } = new URL(url);
	if (!isDecodable(hostname) || !isDecodable(pathname))
		return "has a % in its host or its database that begins no sign: write it as %25";
	const port = query.get("port");
	if (port !== null && (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535))
		return "has a port in its query that is no number from 1 to 65535";
	const mode = query.get("sslmode");
	// The driver takes what it does not know for verify-full.
	if (mode !== null && !SSL_MODES.includes(mode))
		return `must have one of ${SSL_MODES.join(", ")} as its sslmode; got ${JSON.stringify(mode)}`;
	return undefined;
}

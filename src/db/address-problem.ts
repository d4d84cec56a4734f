import { isDecodable } from "../base/environment-reader.ts";

const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/** Says what is wrong with the database URL and how to write it; undefined if it is fine. `url` must be parsable. */
export function addressProblem(url: string): string | undefined {
	const { hostname, pathname, hash, searchParams: query } = new URL(url);
	if (!isDecodable(hostname) || !isDecodable(pathname))
		return "has a % in its host or its database that begins no sign: write it as %25";
	// Settings are appended to the URL and would be lost after a fragment.
	if (hash !== "" || url.endsWith("#")) return "has a # in it: write it as %23";
	if (/,|%2C/i.test(hostname) || query.get("host")?.includes(","))
		return "names several hosts: name one, of a server or of a proxy that leads to the primary";
	const port = query.get("port");
	if (port !== null && (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535))
		return "has a port in its query that is no number from 1 to 65535";
	const mode = query.get("sslmode");
	// The driver treats unknown values as verify-full. The message does not repeat the value: it may be a secret pasted
	// by mistake.
	if (mode !== null && !SSL_MODES.includes(mode))
		return `must have one of ${SSL_MODES.join(", ")} as its sslmode${/^[A-Za-z-]+$/.test(mode) ? `; got "${mode}"` : ""}`;
	return undefined;
}

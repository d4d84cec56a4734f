import { isLoopback, isPassedOn } from "../../gateway/client-address.ts";
import type { Connection } from "../../gateway/connection.ts";

const OWN_NAMES = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Whether somebody on this very machine asks, by one of its own names: a proxy on it speaks for others, and a foreign
 * name that leads here is another site's.
 */
export function isOwnMachine({ request, address }: Pick<Connection, "request" | "address">): boolean {
	const { hostname } = new URL(request.url);
	return isLoopback(address) && !isPassedOn(request.headers, address) && OWN_NAMES.includes(hostname);
}

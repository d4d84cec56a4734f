import { isLoopback, isPassedOn } from "../../gateway/client-address.ts";
import type { Connection } from "../../gateway/connection.ts";

const OWN_NAMES = ["localhost", "127.0.0.1", "[::1]"];

/**
 * True if the client is on this machine and uses one of its own names. A local proxy forwards for others, and a foreign
 * name that resolves here belongs to another site.
 */
export function isOwnMachine({ request, address }: Pick<Connection, "request" | "address">): boolean {
	const { hostname } = new URL(request.url);
	return isLoopback(address) && !isPassedOn(request.headers, address) && OWN_NAMES.includes(hostname);
}

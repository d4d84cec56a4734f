import { isIP } from "node:net";
import { dns } from "bun";
import { ConfigError } from "../config.ts";

/** An address to listen on, as people write it: `http://host:port`. */
export function addressOf(host: string, port: number | undefined): string {
	return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Where this machine reaches what listens there: not every address to listen on is one to connect to. */
export function reachableAddressOf(host: string, port: number): string {
	return addressOf({ "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host, port);
}

/**
 * Asks for a host before anything listens on it: `listen` says of a name that nobody knows whatever the last call of the system had
 * failed with, be it of a connection elsewhere. As the system looks names up, and so as `listen` does.
 */
export async function checkHost(host: string): Promise<void> {
	if (isIP(host) !== 0 || (await isKnown(host))) return;
	throw new ConfigError([`HOST must be an address of this machine, or a name of one, without a port; got "${host}"`]);
}

async function isKnown(name: string): Promise<boolean> {
	return dns.lookup(name, { backend: "getaddrinfo" }).then(
		(addresses) => addresses.length > 0,
		() => false,
	);
}

/**
 * The gateways share the port, and so would a stranger who asks for it in the same way: it must be nobody's when they
 * start. 0 takes one that is free now.
 */
export function claimPort(hostname: string, port: number): number {
	const probe = Bun.listen({ hostname, port, socket: { data() {} } });
	const claimed = probe.port;
	probe.stop(true);
	return claimed;
}

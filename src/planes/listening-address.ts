import { isIP } from "node:net";
import { dns } from "bun";
import { ConfigError } from "../config.ts";

export function listeningUrl(host: string, port: number | undefined): string {
	return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** URL for connections from this machine; wildcard addresses become loopback. */
export function reachableUrl(host: string, port: number): string {
	return listeningUrl({ "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host, port);
}

/** Checks that the host name resolves, because the error of `listen` for an unknown name would be misleading. */
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

/** Checks that the port is free: with SO_REUSEPORT, another program could share it. Port 0 picks a free port. */
export function claimPort(hostname: string, port: number): number {
	const probe = Bun.listen({ hostname, port, socket: { data() {} } });
	const claimed = probe.port;
	probe.stop(true);
	return claimed;
}

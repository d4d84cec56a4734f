import { BlockList, isIP } from "node:net";

/** Says which client a request comes from: the peer, or what a proxy that is trusted says of it. */
export type ClientAddress = (peer: string, forwardedFor: string | null) => string;

/** `x-forwarded-for` is read from the right, past every trusted hop; the first address that is not one is the client. */
export function createClientAddress(trustedProxies: readonly string[]): ClientAddress {
	const trusted = new BlockList();
	for (const entry of trustedProxies) {
		const [address = "", prefix] = entry.split("/");
		const family = isIP(address) === 6 ? "ipv6" : "ipv4";
		if (prefix === undefined) trusted.addAddress(address, family);
		else trusted.addSubnet(address, Number(prefix), family);
	}
	const isTrusted = (address: string) =>
		isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

	return (peer, forwardedFor) => {
		let client = plain(peer);
		if (forwardedFor === null) return client;
		const hops = forwardedFor.split(",").map((hop) => plain(hop.trim()));
		while (isTrusted(client)) {
			const hop = hops.pop();
			if (hop === undefined || isIP(hop) === 0) break;
			client = hop;
		}
		return client;
	};
}

/** Of this machine's own addresses those that nobody else can reach. */
export function isLoopback(address: string): boolean {
	return address === "::1" || /^127\.\d+\.\d+\.\d+$/.test(plain(address));
}

/** Said from one of our processes to another: the request had come through somebody before. */
export const PASSED_ON_HEADER = "x-tollgate-passed-on";

/** Whether a proxy, known or not, stands between us and the client. `address` is the client's as far as we know it. */
export function isPassedOn(headers: Headers, address: string): boolean {
	const forwardedFor = headers.get("x-forwarded-for");
	if (forwardedFor !== null && forwardedFor.trim() !== address) return true;
	return ["forwarded", "x-real-ip", "via", PASSED_ON_HEADER].some((name) => headers.has(name));
}

function plain(address: string): string {
	return address.startsWith("::ffff:") ? address.slice(7) : address;
}

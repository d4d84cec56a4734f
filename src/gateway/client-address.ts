import { BlockList, isIP } from "node:net";
import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { errorResponse } from "./error-body.ts";

/** Returns a request's client address: the TCP peer's, or the address that a trusted proxy reports. */
export type ClientAddress = (peer: string, forwardedFor: string | null) => string;

/** Reads `x-forwarded-for` from the right up to the first untrusted address. Calls `onUnknownProxy` once. */
export function createClientAddress(
	trustedProxies: readonly string[],
	onUnknownProxy: (peer: string) => void = () => {},
): ClientAddress {
	const trusted = new BlockList();
	for (const entry of trustedProxies) {
		const [address = "", prefix] = entry.split("/");
		const family = isIP(address) === 6 ? "ipv6" : "ipv4";
		if (prefix === undefined) trusted.addAddress(address, family);
		else trusted.addSubnet(address, Number(prefix), family);
	}
	const isTrusted = (address: string) =>
		isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

	let isTold = false;

	return (peer, forwardedFor) => {
		let client = plain(peer);
		if (forwardedFor === null) return client;
		if (!isTold && !isTrusted(client)) {
			isTold = true;
			onUnknownProxy(client);
		}
		const hops = forwardedFor.split(",");
		while (isTrusted(client)) {
			const hop = withoutPort(hops.pop()?.trim() ?? "");
			if (isIP(hop) === 0) break;
			client = hop;
		}
		return client;
	};
}

/** Warns once. Clients after an untrusted proxy share its address, and so its limit of failed authentications. */
export function warnOfUnknownProxy(log: Log): (peer: string) => void {
	return (proxy) =>
		log.warn(
			"requests arrive through a proxy that is not in TRUSTED_PROXIES: until it is added, all its clients share one limit of failed sign-ins",
			{ proxy },
		);
}

export function isLoopback(address: string): boolean {
	return address === "::1" || /^127\.\d+\.\d+\.\d+$/.test(plain(address));
}

/** Header from the gateway process to the console process: the request came through a proxy. */
export const PASSED_ON_HEADER = "x-tollgate-passed-on";

/** True if any proxy, trusted or not, forwarded the request. `address`: the client's address as far as known. */
export function cameThroughProxy(headers: Headers, address: string): boolean {
	const forwardedFor = headers.get("x-forwarded-for");
	if (forwardedFor !== null && forwardedFor.trim() !== address) return true;
	return ["forwarded", "x-real-ip", "via", PASSED_ON_HEADER].some((name) => headers.has(name));
}

/** Removes the port that some proxies (Azure's) append: with it, each connection would count as another client. */
function withoutPort(hop: string): string {
	const [, bracketed, dotted] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(hop) ?? [];
	return plain(bracketed ?? dotted ?? hop);
}

/** Converts an IPv4-mapped IPv6 address to IPv4, so that a client has a single address. */
function plain(address: string): string {
	if (!/:ffff:/i.test(address) || isIP(address) !== 6) return address;
	const tail = address.slice("::ffff:".length);
	if (address.startsWith("::ffff:") && isIP(tail) === 4) return tail;
	const { hostname } = new URL(`http://[${address.replace(/%.*$/, "")}]`);
	const mapped = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname);
	if (mapped === null) return address;
	const [high = 0, low = 0] = mapped.slice(1).map((group) => Number.parseInt(group, 16));
	return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

type Answer = Response | Promise<Response>;

/** Paths of health probes, which are answered even without a `Host` header. */
export type Probes = Readonly<Record<"/livez" | "/readyz", () => Answer>>;

/**
 * Refuses requests without a valid `Host` header, from which the runtime builds the URL. Probes are answered anyway:
 * load balancers send them by HTTP/1.0 without `Host` (HAProxy's `option httpchk`).
 */
export function createUrlCheck(probes: Probes): (request: Request) => Answer | undefined {
	/** Scheme and host of the last valid URL. Most requests have the same ones, so a comparison saves parsing the URL. */
	let known = "";
	return ({ url, headers }) => {
		if (known !== "" && url.startsWith(known)) return undefined;
		if (!URL.canParse(url)) {
			const [path] = url.split("?", 1);
			if (!headers.get("host") && (path === "/livez" || path === "/readyz")) return probes[path]();
			const fault = new Fault("invalid_request", `The Host header of the request is not valid${zoneHint(headers)}.`);
			return errorResponse(fault, newRequestId().requestId);
		}
		known = `${url.slice(0, url.indexOf("/", url.indexOf("://") + 3))}/`;
		return undefined;
	};
}

/** Hint for a `Host` with an IPv6 zone, which is valid only on the client's machine and must be removed (RFC 6874). */
function zoneHint(headers: Headers): string {
	return /^\[[^\]]*%/.test(headers.get("host") ?? "")
		? ": an IPv6 address has no zone (%…) there. Use an address without one, or a name"
		: "";
}

import { lookup } from "node:dns/promises";
import { type ClientRequest, request as requestHttp } from "node:http";
import { type RequestOptions, request as requestHttps } from "node:https";
import { BlockList, isIP, type LookupFunction } from "node:net";
import type { TextId } from "../../base/translate.ts";
import { isLoopback } from "../../gateway/client-address.ts";

export type ResolvedHost =
	| { readonly addresses: Addresses }
	| { readonly problem: "address_not_public" | "name_not_found" | "timeout" };
type Addresses = readonly { readonly address: string; readonly family: number }[];

export type ResolveHost = (host: string) => Promise<Addresses>;
export const resolveByDns: ResolveHost = (host) => lookup(host, { all: true });

const URL_CHARS_MAX = 2_000;

/**
 * Returns why a customer's URL is refused; undefined if it is allowed. Does not resolve the host name, which each call
 * does. With `production` false, addresses of this machine and plain HTTP are allowed too.
 */
export function publicUrlProblem(text: string, production: boolean): TextId | undefined {
	const url = URL.canParse(text) ? new URL(text) : undefined;
	// Checked when the URL is stored and before each call to it.
	if (url === undefined || url.href.length > URL_CHARS_MAX) return "Enter a valid URL.";
	if (url.username !== "" || url.password !== "") return "The URL must not contain a user name or password.";
	const host = hostOf(url);
	const isOwn = host === "localhost" || isLoopback(host);
	if (url.protocol !== "https:" && !(url.protocol === "http:" && isOwn && !production))
		return "The URL must begin with https://";
	if (production && (host === "localhost" || (isIP(host) !== 0 && !isPublicAddress(host))))
		return "The URL must point to a public address.";
	return undefined;
}

/** Resolves a host name. In production throws if any of its addresses is not public. */
export async function resolvePublicHost(
	text: string,
	production: boolean,
	resolve: ResolveHost,
	signal: AbortSignal,
): Promise<ResolvedHost> {
	if (publicUrlProblem(text, production) !== undefined) return { problem: "address_not_public" };
	const host = hostOf(new URL(text));
	const addresses = isIP(host) === 0 ? await resolved(resolve, host, signal) : [{ address: host, family: isIP(host) }];
	if (addresses === undefined) return { problem: signal.aborted ? "timeout" : "name_not_found" };
	if (production && !addresses.every(({ address }) => isPublicAddress(address)))
		return { problem: "address_not_public" };
	return { addresses };
}

/** Connects only to the given addresses, on a new connection. Does not follow redirects. */
export function pinnedRequest(text: string, addresses: Addresses, options: RequestOptions): ClientRequest {
	const url = new URL(text);
	const pinned: LookupFunction = (_host, _options, done) => done(null, [...addresses]);
	const request = url.protocol === "https:" ? requestHttps : requestHttp;
	const sending = request(url, { ...options, agent: false, lookup: pinned });
	// Bun reports an upgrade neither as response nor as error: without this handler the request would never end.
	sending.on("upgrade", (_response, socket) => {
		socket.destroy();
		sending.emit("error", new Error("it answers by another protocol"));
	});
	return sending;
}

async function resolved(resolve: ResolveHost, host: string, signal: AbortSignal): Promise<Addresses | undefined> {
	const late = new Promise<undefined>((done) => {
		if (signal.aborted) done(undefined);
		signal.addEventListener("abort", () => done(undefined), { once: true });
	});
	const found = await Promise.race([resolve(host).catch(() => undefined), late]);
	return found?.length ? found : undefined;
}

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, "$1");

/** Refused IPv4 ranges: IANA's special-purpose registry, multicast, and ranges reserved for future use. */
const SPECIAL_V4 = [
	"0.0.0.0/8",
	"10.0.0.0/8",
	"100.64.0.0/10",
	"127.0.0.0/8",
	"169.254.0.0/16",
	"172.16.0.0/12",
	"192.0.0.0/24",
	"192.0.2.0/24",
	"192.31.196.0/24",
	"192.52.193.0/24",
	"192.88.99.0/24",
	"192.168.0.0/16",
	"192.175.48.0/24",
	"198.18.0.0/15",
	"198.51.100.0/24",
	"203.0.113.0/24",
	"224.0.0.0/3",
];
/** The only IPv6 range that IANA has allocated for public use. */
const GLOBAL_V6 = "2000::/3";
/** Refused parts of `GLOBAL_V6`: those that embed IPv4 addresses (6to4, Teredo), documentation and tests. */
const SPECIAL_V6 = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"];

const special = listOf([...SPECIAL_V4, ...SPECIAL_V6]);
const global6 = listOf([GLOBAL_V6]);

export function isPublicAddress(address: string): boolean {
	const family = isIP(address);
	if (family === 4) return !special.check(address, "ipv4");
	return family === 6 && global6.check(address, "ipv6") && !special.check(address, "ipv6");
}

function listOf(subnets: readonly string[]): BlockList {
	const list = new BlockList();
	for (const subnet of subnets) {
		const [address = "", bits] = subnet.split("/");
		list.addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4");
	}
	return list;
}

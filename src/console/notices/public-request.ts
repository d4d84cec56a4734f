import { lookup } from "node:dns/promises";
import { type ClientRequest, request as requestHttp } from "node:http";
import { type RequestOptions, request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { TextId } from "../../base/translate.ts";
import { isLoopback } from "../../gateway/client-address.ts";
import { isPublicAddress } from "./public-address.ts";

/** Resolved addresses of a customer's URL, or why nothing is sent there. */
export type Found =
	| { readonly addresses: Addresses }
	| { readonly problem: "address_not_public" | "name_not_found" | "timeout" };
type Addresses = readonly { readonly address: string; readonly family: number }[];

export type Resolve = (host: string) => Promise<Addresses>;
export const resolveByDns: Resolve = (host) => lookup(host, { all: true });

const URL_CHARS_MAX = 2_000;

/**
 * Why nothing is sent to a customer's URL; undefined if sending is allowed. The name is resolved on each request.
 * `production` false allows a developer's own machine, without TLS too.
 */
export function publicUrlProblem(text: string, production: boolean): TextId | undefined {
	const url = URL.canParse(text) ? new URL(text) : undefined;
	// Parsed when stored and before each call.
	if (url === undefined || url.href.length > URL_CHARS_MAX) return "That is no address.";
	if (url.username !== "" || url.password !== "") return "The address must have no user and no password in it.";
	const host = hostOf(url);
	const isOwn = host === "localhost" || isLoopback(host);
	if (url.protocol !== "https:" && !(url.protocol === "http:" && isOwn && !production))
		return "The address must begin with https://";
	if (production && (host === "localhost" || (isIP(host) !== 0 && !isPublicAddress(host))))
		return "The address must be one of the public internet.";
	return undefined;
}

/** In production a name with any address that is not public is refused. */
export async function findPublic(
	text: string,
	production: boolean,
	resolve: Resolve,
	signal: AbortSignal,
): Promise<Found> {
	if (publicUrlProblem(text, production) !== undefined) return { problem: "address_not_public" };
	const host = hostOf(new URL(text));
	const addresses = isIP(host) === 0 ? await resolved(resolve, host, signal) : [{ address: host, family: isIP(host) }];
	if (addresses === undefined) return { problem: signal.aborted ? "timeout" : "name_not_found" };
	if (production && !addresses.every(({ address }) => isPublicAddress(address)))
		return { problem: "address_not_public" };
	return { addresses };
}

/** Connects to exactly the checked addresses, on a connection of its own. Redirects are treated like any response. */
export function pinnedRequest(text: string, addresses: Addresses, options: RequestOptions): ClientRequest {
	const url = new URL(text);
	const pinned: LookupFunction = (_host, _options, done) => done(null, [...addresses]);
	const request = url.protocol === "https:" ? requestHttps : requestHttp;
	const sending = request(url, { ...options, agent: false, lookup: pinned });
	// Bun emits neither response nor error for it, so the deadline would never fire.
	sending.on("upgrade", (_response, socket) => {
		socket.destroy();
		sending.emit("error", new Error("it answers by another protocol"));
	});
	return sending;
}

/** Undefined if there are none, or none in time. */
async function resolved(resolve: Resolve, host: string, signal: AbortSignal): Promise<Addresses | undefined> {
	const late = new Promise<undefined>((done) => {
		if (signal.aborted) done(undefined);
		signal.addEventListener("abort", () => done(undefined), { once: true });
	});
	const found = await Promise.race([resolve(host).catch(() => undefined), late]);
	return found?.length ? found : undefined;
}

/** Without the brackets of IPv6. */
function hostOf({ hostname }: URL): string {
	return hostname.replace(/^\[(.*)\]$/, "$1");
}

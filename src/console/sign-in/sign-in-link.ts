import { cameThroughProxy, isLoopback } from "../../gateway/client-address.ts";
import type { Connection } from "../../gateway/connection.ts";
import { ConsoleError } from "../console-error.ts";
import type { Auth } from "./auth.ts";
import { ADDRESS_HEADER } from "./auth-request.ts";
import { LINK_PAGES, type LinkPage, SIGN_IN_LINK } from "./new-sign-in-link.ts";

/** The library's path for sign-in links, which is not served to clients. */
const VERIFY = "/api/auth/magic-link/verify";
const REFUSED = "/link-refused";
const USED_UP = "This link has expired or was already used. Tollgate prints new links each time it starts.\n";

/**
 * Opens a sign-in link of the first run: valid once, for some hours, from this machine only. A person who is already
 * signed in is redirected even if the link is invalid. Faults `forbidden`, `not_found`.
 */
export async function openSignInLink(auth: Auth, connection: Connection): Promise<Response> {
	const { request, address } = connection;
	const url = new URL(request.url);
	const [page = "", token = ""] = url.pathname.slice(SIGN_IN_LINK.length).split("/");
	const target = Object.hasOwn(LINK_PAGES, page) ? LINK_PAGES[page as LinkPage] : undefined;
	if (request.method !== "GET" || target === undefined || token === "")
		throw new ConsoleError("not_found", "There is no such endpoint.");
	if (!isOwnMachine(connection))
		throw new ConsoleError("forbidden", "This link works only on the machine that runs the service.");
	// Ignores a browser's prefetch, which would use up the link.
	if (/prefetch|prerender/.test(`${request.headers.get("sec-purpose")} ${request.headers.get("purpose")}`))
		throw new ConsoleError("forbidden", "This link cannot be prefetched. Open it in a browser tab.");
	const query = new URLSearchParams({ token, callbackURL: target, errorCallbackURL: REFUSED });
	const headers = new Headers(request.headers);
	headers.set(ADDRESS_HEADER, address);
	const answer = await auth.handler(new Request(`${url.origin}${VERIFY}?${query}`, { headers }));
	if (answer.status === 302 && !answer.headers.get("location")?.includes(REFUSED)) return answer;
	const { session } = (await auth.api.getSession({ headers })) ?? {};
	if (session !== undefined) return new Response(null, { status: 302, headers: { location: target } });
	return new Response(USED_UP, { status: 410, headers: { "content-type": "text/plain; charset=utf-8" } });
}

const OWN_NAMES = ["localhost", "127.0.0.1", "[::1]"];

/**
 * True if the client runs on this machine and addresses it by one of its own names. Excludes requests that a local
 * proxy forwards for other clients, and foreign names that resolve to this machine (DNS rebinding).
 */
export function isOwnMachine({ request, address }: Pick<Connection, "request" | "address">): boolean {
	const { hostname } = new URL(request.url);
	return isLoopback(address) && !cameThroughProxy(request.headers, address) && OWN_NAMES.includes(hostname);
}

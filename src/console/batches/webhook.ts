import { hkdfSync } from "node:crypto";
import { lookup } from "node:dns/promises";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import { isIP } from "node:net";
import { Webhook } from "standardwebhooks";
import { isLoopback } from "../../gateway/client-address.ts";
import { isPublicAddress } from "./public-address.ts";

/** What is sent to a customer's own server. */
export interface WebhookMessage {
	/** The same at each attempt: the receiver knows repetitions by it. */
	readonly id: string;
	readonly url: string;
	/** `whsec_…` */
	readonly secret: string;
	/** JSON. */
	readonly body: string;
	readonly atMs: number;
}

/** What came of it: the answer's HTTP status, or why there is none. */
export type WebhookAnswer = { readonly status: number } | { readonly problem: WebhookProblem };
export type WebhookProblem = "address_not_public" | "name_not_found" | "timeout" | "no_connection";

/** Sends one message once; never throws. */
export type WebhookSender = (message: WebhookMessage, signal: AbortSignal) => Promise<WebhookAnswer>;

const URL_CHARS_MAX = 2_000;
const DEADLINE_MS = 10_000;
const SECRET_BYTES = 32;

type Resolve = (host: string) => Promise<readonly { address: string; family: number }[]>;
const resolveByDns: Resolve = (host) => lookup(host, { all: true });

/** Nothing of it is stored but the salt: who reads the database can sign nothing. */
export function webhookSecret(consoleSecret: string, salt: string): string {
	const bytes = hkdfSync("sha256", consoleSecret, salt, "tollgate webhooks", SECRET_BYTES);
	return `whsec_${Buffer.from(bytes).toString("base64")}`;
}

/**
 * Why an address is no webhook's; undefined if it may be one. What its name leads to is looked at each time something
 * is sent. `production`: false lets a developer's own machine be called, without TLS too.
 */
export function webhookUrlProblem(text: string, production: boolean): string | undefined {
	const url = URL.canParse(text) ? new URL(text) : undefined;
	if (url === undefined || text.length > URL_CHARS_MAX) return "That is no address.";
	if (url.username !== "" || url.password !== "") return "The address must have no user and no password in it.";
	const host = hostOf(url);
	const isOwn = host === "localhost" || isLoopback(host);
	if (url.protocol !== "https:" && !(url.protocol === "http:" && isOwn && !production))
		return "The address must begin with https://";
	if (production && (host === "localhost" || (isIP(host) !== 0 && !isPublicAddress(host))))
		return "The address must be one of the public internet.";
	return undefined;
}

/**
 * Signs after Standard Webhooks. In production a name that leads to any address that is not public is not called, and
 * the connection is made to the very addresses that were looked at. Redirects are answers like any others, and of an
 * answer nothing is read but its status.
 */
export function createWebhookSender(options: { production: boolean }, resolve: Resolve = resolveByDns): WebhookSender {
	return async (message, signal) => {
		if (webhookUrlProblem(message.url, options.production) !== undefined) return { problem: "address_not_public" };
		const url = new URL(message.url);
		const deadline = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
		const host = hostOf(url);
		const found =
			isIP(host) === 0 ? await addressesOf(resolve, host, deadline) : [{ address: host, family: isIP(host) }];
		if (found === undefined) return { problem: deadline.aborted ? "timeout" : "name_not_found" };
		if (options.production && !found.every(({ address }) => isPublicAddress(address)))
			return { problem: "address_not_public" };
		return post(url, message, found, deadline);
	};
}

/** Undefined if there are none, or not in time. */
async function addressesOf(resolve: Resolve, host: string, signal: AbortSignal) {
	const late = new Promise<undefined>((done) => {
		if (signal.aborted) done(undefined);
		signal.addEventListener("abort", () => done(undefined), { once: true });
	});
	const found = await Promise.race([resolve(host).catch(() => undefined), late]);
	return found?.length ? found : undefined;
}

function post(
	url: URL,
	message: WebhookMessage,
	addresses: readonly { address: string; family: number }[],
	signal: AbortSignal,
): Promise<WebhookAnswer> {
	const { id, secret, body, atMs } = message;
	const sentAt = new Date(atMs);
	const request = url.protocol === "https:" ? requestHttps : requestHttp;
	const pinned: LookupFunction = (_host, _options, done) => done(null, [...addresses]);
	return new Promise((answer) => {
		const sending = request(url, {
			method: "POST",
			agent: false,
			lookup: pinned,
			signal,
			headers: {
				"content-type": "application/json",
				"content-length": Buffer.byteLength(body),
				"user-agent": "Tollgate-Webhooks",
				"webhook-id": id,
				"webhook-timestamp": String(Math.floor(atMs / 1000)),
				"webhook-signature": new Webhook(secret).sign(id, sentAt, body),
			},
		});
		sending.on("response", (response) => {
			answer({ status: response.statusCode ?? 0 });
			response.on("error", () => {});
			response.destroy();
		});
		sending.on("error", () => answer({ problem: signal.aborted ? "timeout" : "no_connection" }));
		sending.end(body);
	});
}

/** Without the brackets of IPv6. */
function hostOf({ hostname }: URL): string {
	return hostname.replace(/^\[(.*)\]$/, "$1");
}

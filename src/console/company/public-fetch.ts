import { lookup } from "node:dns/promises";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { isPublicAddress } from "../batches/public-address.ts";
import { webhookUrlProblem } from "../batches/webhook.ts";

export interface FetchInit {
	readonly method?: string;
	readonly headers?: Readonly<Record<string, string>>;
	readonly body?: unknown;
	readonly signal?: AbortSignal | undefined;
}
export type PublicFetch = (url: string, init: FetchInit) => Promise<Response>;

const DEADLINE_MS = 10_000;
/** Keys and the description of a provider; the usual ones have some 10 KB. */
const ANSWER_BYTES_MAX = 512 * 1024;

type Resolve = (host: string) => Promise<readonly { address: string; family: number }[]>;
const resolveByDns: Resolve = (host) => lookup(host, { all: true });

/**
 * `fetch` for addresses that customers write down: in production they lead to the public internet alone, the connection
 * is made to the very address that was looked at, no redirect is followed, and an answer has a size and a deadline.
 */
export function createPublicFetch(options: { production: boolean }, resolve: Resolve = resolveByDns): PublicFetch {
	return async (address, { method = "GET", headers = {}, body, signal }) => {
		if (webhookUrlProblem(address, options.production) !== undefined) throw new Error("the address is not public");
		const url = new URL(address);
		const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
		const found = isIP(host) === 0 ? await resolve(host) : [{ address: host, family: isIP(host) }];
		if (found.length === 0 || (options.production && !found.every((one) => isPublicAddress(one.address))))
			throw new Error("the address is not public");
		const deadline = AbortSignal.timeout(DEADLINE_MS);
		const pinned: LookupFunction = (_host, _options, done) => done(null, [...found]);
		const bytes = body === undefined || body === null ? undefined : String(body);
		const send = url.protocol === "https:" ? requestHttps : requestHttp;
		return new Promise<Response>((answer, fail) => {
			const sending = send(url, {
				method,
				agent: false,
				lookup: pinned,
				signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
				headers: { ...headers, ...(bytes === undefined ? {} : { "content-length": String(Buffer.byteLength(bytes)) }) },
			});
			sending.on("error", fail);
			sending.on("response", (response) => {
				const parts: Buffer[] = [];
				let size = 0;
				response.on("data", (part: Buffer) => {
					size += part.length;
					if (size > ANSWER_BYTES_MAX) sending.destroy(new Error("the answer is too large"));
					else parts.push(part);
				});
				response.on("error", fail);
				response.on("end", () => {
					const kept = new Headers();
					for (const name of ["content-type", "date", "www-authenticate", "dpop-nonce"]) {
						const value = response.headers[name];
						if (typeof value === "string") kept.set(name, value);
					}
					const status = response.statusCode ?? 500;
					const empty = status === 204 || status === 304;
					answer(new Response(empty ? null : Buffer.concat(parts), { status, headers: kept }));
				});
			});
			sending.end(bytes);
		});
	};
}

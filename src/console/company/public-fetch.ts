import { findPublic, pinnedRequest, type Resolve, resolveByDns } from "../notices/public-request.ts";

export interface FetchInit {
	readonly method?: string;
	readonly headers?: Readonly<Record<string, string>>;
	readonly body?: unknown;
	readonly signal?: AbortSignal | undefined;
}
export type PublicFetch = (url: string, init: FetchInit) => Promise<Response>;

const DEADLINE_MS = 10_000;
/** Longest response with a provider's keys or metadata; usual ones have about 10 KB. */
const ANSWER_BYTES_MAX = 512 * 1024;
const STATUS_MIN = 200;
const STATUS_MAX = 599;
const PROBLEMS = {
	address_not_public: "the address is not public",
	name_not_found: "its name leads nowhere",
	timeout: "no answer in time",
} as const;

/**
 * `fetch` for addresses that customers enter. In production they must resolve to the public internet. The connection
 * goes to the address that was checked, redirects are not followed, and the response has a size limit and a deadline.
 */
export function createPublicFetch(options: { production: boolean }, resolve: Resolve = resolveByDns): PublicFetch {
	return async (address, { method = "GET", headers = {}, body, signal }) => {
		const late = AbortSignal.timeout(DEADLINE_MS);
		const deadline = signal === undefined ? late : AbortSignal.any([signal, late]);
		const found = await findPublic(address, options.production, resolve, deadline);
		if ("problem" in found) throw new Error(PROBLEMS[found.problem]);
		const bytes = body === undefined || body === null ? undefined : String(body);
		return new Promise<Response>((answer, fail) => {
			const sending = pinnedRequest(address, found.addresses, {
				method,
				signal: deadline,
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
					const status = response.statusCode ?? 0;
					// An error thrown here, in a callback, would be unhandled and end the process.
					if (status < STATUS_MIN || status > STATUS_MAX) return fail(new Error("a status that there is not"));
					const kept = new Headers();
					for (const name of ["content-type", "date", "www-authenticate", "dpop-nonce"]) {
						const value = response.headers[name];
						if (typeof value === "string") kept.set(name, value);
					}
					const empty = status === 204 || status === 304;
					answer(new Response(empty ? null : Buffer.concat(parts), { status, headers: kept }));
				});
			});
			sending.end(bytes);
		});
	};
}

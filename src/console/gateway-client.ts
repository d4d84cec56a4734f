import type { Clock } from "../base/clock.ts";
import type { Language } from "../base/language.ts";
import type { Log } from "../base/log.ts";
import { isConnectFailure } from "../base/passed-body.ts";
import type { Connection } from "../gateway/connection.ts";
import { signInternalToken } from "../keys/internal-token.ts";
import type { KeyDigest } from "../keys/secret.ts";
import { ConsoleError } from "./console-error.ts";

/** A request that the console sends to a gateway's inference API, authorized by a key's digest. */
export interface GatewayRequest {
	readonly keyDigest: KeyDigest;
	readonly method: "GET" | "POST";
	readonly path: string;
	readonly contentType: string;
	readonly accept: string;
	readonly body: Uint8Array<ArrayBuffer> | ArrayBuffer | null;
	/** The gateway runs requests with the same idempotency key once. */
	readonly idempotencyKey?: string;
	readonly address: string;
	readonly language: Language;
	readonly signal: AbortSignal;
}

export interface GatewayClient {
	send(request: GatewayRequest): Promise<Response>;
}

export interface GatewayAddress {
	/** `http://host:port`; the host is ignored when `unix` names a socket. */
	readonly url: string;
	readonly unix?: string;
}

export function createGatewayClient(
	deps: { clock: Clock; log: Log; places: () => readonly GatewayAddress[] },
	options: { secret: string },
): GatewayClient {
	const { clock, log } = deps;
	return {
		async send(request) {
			const places = deps.places();
			const first = Math.floor(Math.random() * places.length);
			for (const place of [...places.slice(first), ...places.slice(0, first)]) {
				try {
					return await fetch(`${place.url}${request.path}`, {
						...(place.unix === undefined ? {} : { unix: place.unix }),
						method: request.method,
						headers: headersOf(request, options.secret, clock.wallMs()),
						body: request.body,
						signal: request.signal,
						redirect: "manual",
						keepalive: false,
						timeout: false,
						proxy: false,
					} as BunFetchRequestInit);
				} catch (error) {
					if (request.signal.aborted) throw error;
					// A gateway that accepted the request and then died may have served it: do not send it to another.
					if (!isConnectFailure(error))
						throw new ConsoleError(
							"service_unavailable",
							"The gateway stopped before it responded. The request log shows what was charged.",
							{ retryAfterS: 5, cause: error },
						);
					log.debug("a gateway is not there", { place: place.unix ?? place.url, error });
				}
			}
			throw new ConsoleError(
				"service_unavailable",
				"No gateway is running, so no model can be reached. Please try again.",
				{ retryAfterS: 5 },
			);
		},
	};
}

/** Client for a process that runs both planes: calls the gateway's handler directly, without a socket. */
export function createInProcessGatewayClient(
	deps: { clock: Clock; handler: (connection: Connection) => Promise<Response> },
	options: { secret: string },
): GatewayClient {
	return {
		send(request) {
			const asked = new Request(`http://gateway${request.path}`, {
				method: request.method,
				headers: headersOf(request, options.secret, deps.clock.wallMs()),
				body: request.body,
				signal: request.signal,
			});
			return deps.handler({ request: asked, address: request.address, setIdleTimeout() {} });
		},
	};
}

function headersOf(request: GatewayRequest, secret: string, nowMs: number): Record<string, string> {
	const { keyDigest, path, idempotencyKey } = request;
	return {
		...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
		authorization: `Bearer ${signInternalToken(secret, { keyDigest, path }, nowMs)}`,
		"content-type": request.contentType,
		accept: request.accept,
		"accept-language": request.language,
		"accept-encoding": "identity",
		"user-agent": "tollgate-console",
		"x-forwarded-for": request.address,
	};
}

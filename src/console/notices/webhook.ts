import { hkdfSync } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { pinnedRequest, type ResolveHost, resolveByDns, resolvePublicHost } from "./public-request.ts";

export interface WebhookMessage {
	/** Message id; equal for all attempts, so that receivers detect repetitions. */
	readonly id: string;
	readonly url: string;
	readonly secret: string;
	readonly body: string;
	readonly atMs: number;
}

export type WebhookAnswer = { readonly status: number } | { readonly problem: WebhookProblem };
export type WebhookProblem = "address_not_public" | "name_not_found" | "timeout" | "no_connection";

export type WebhookSender = (message: WebhookMessage, signal: AbortSignal) => Promise<WebhookAnswer>;

const DEADLINE_MS = 10_000;
const SECRET_BYTES = 32;

/** Derives the signing secret from a salt. A person who can read only the database, which has the salt, cannot sign. */
export function webhookSecret(consoleSecret: string, salt: string): string {
	const bytes = hkdfSync("sha256", consoleSecret, salt, "tollgate webhooks", SECRET_BYTES);
	return `whsec_${Buffer.from(bytes).toString("base64")}`;
}

/**
 * Sends signed webhooks as Standard Webhooks specifies. Connects to public addresses only (`resolvePublicHost`) and reads only
 * the response's status.
 */
export function createWebhookSender(
	options: { production: boolean },
	resolve: ResolveHost = resolveByDns,
): WebhookSender {
	return async ({ id, url, secret, body, atMs }, signal) => {
		const deadline = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
		const found = await resolvePublicHost(url, options.production, resolve, deadline);
		if ("problem" in found) return found;
		return new Promise((answer) => {
			const sending = pinnedRequest(url, found.addresses, {
				method: "POST",
				signal: deadline,
				headers: {
					"content-type": "application/json",
					"content-length": Buffer.byteLength(body),
					"user-agent": "Tollgate-Webhooks",
					"webhook-id": id,
					"webhook-timestamp": String(Math.floor(atMs / 1000)),
					"webhook-signature": new Webhook(secret).sign(id, new Date(atMs), body),
				},
			});
			sending.on("response", (response) => {
				answer({ status: response.statusCode ?? 0 });
				response.on("error", () => {});
				response.destroy();
			});
			sending.on("error", () => answer({ problem: deadline.aborted ? "timeout" : "no_connection" }));
			sending.end(body);
		});
	};
}

import type { ConsoleParts } from "../console/console-deps.ts";
import { claimSubject } from "../keys/management-claim.ts";
import type { ManagementCall } from "./management-call.ts";

/**
 * The id under which this call makes something: `fresh`, unless the same call was made before with the same token. Then
 * whoever makes it under this id makes no second one. Fault idempotency_mismatch.
 */
export async function claimed({ keyMaker, clock }: ConsoleParts, call: ManagementCall, fresh: string): Promise<string> {
	if (call.token === null) return fresh;
	const { method, url } = call.connection.request;
	const { client_token: _, ...asked } = call.body as Record<string, unknown>;
	const request = JSON.stringify([method, new URL(url).pathname, Object.entries(asked).sort()]);
	return claimSubject(keyMaker, {
		by: call.caller.id,
		token: call.token,
		request,
		subject: fresh,
		nowMs: clock.wallMs(),
	});
}

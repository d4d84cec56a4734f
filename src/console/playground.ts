import { Fault } from "../base/fault.ts";
import type { Connection } from "../gateway/connection.ts";
import type { KeyDigest } from "../keys/digest.ts";
import type { ConsoleParts } from "./console-deps.ts";

/**
 * POST /api/console/playground/chat?key=…: a chat in the name of one of the account's own keys, billed to it and bound by
 * its cap, allowlist and limits. The request goes the public interface's whole way; only the secret, which nobody has any
 * more, is replaced by the session: the key's stored digest leads to the same entry of the keyring, revocations included.
 */
export async function playgroundChat(parts: ConsoleParts, connection: Connection): Promise<Response> {
	const { accountId } = parts.visits.account(connection.request);
	const keyId = new URL(connection.request.url).searchParams.get("key") ?? "";
	const [key] = await parts.statements<{ digest: KeyDigest }>`
		select digest from api_key where id = ${keyId} and account_id = ${accountId}`;
	if (key === undefined) throw new Fault("not_found", "There is no such key.", { param: "key" });
	return parts.chatAs(key.digest, connection);
}

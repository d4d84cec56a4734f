import { checkKey } from "../../keys/access.ts";
import { invalidApiKey } from "../../keys/bearer.ts";
import type { Keyring } from "../../keys/keyring.ts";
import type { Connection } from "../exchange.ts";
import type { ChatDeps } from "./chat.ts";
import { chat } from "./chat.ts";

/** A chat like any other, in the name of the key with this digest; the caller has made sure that its owner asks. */
export function createChatAs(deps: ChatDeps & { keyring: Pick<Keyring, "load"> }) {
	return (keyDigest: string, connection: Connection): Promise<Response> => {
		const authenticate = async () => {
			const entry = await deps.keyring.load(keyDigest);
			if (entry === null) throw invalidApiKey();
			checkKey(entry, deps.clock.wallMs());
			return entry;
		};
		return chat({ ...deps, authenticate }, connection);
	};
}

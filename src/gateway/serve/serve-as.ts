import { checkKey } from "../../keys/access.ts";
import { invalidApiKey } from "../../keys/bearer.ts";
import type { KeyDigest } from "../../keys/digest.ts";
import type { Keyring } from "../../keys/keyring.ts";
import type { Connection } from "../connection.ts";
import type { ServeDeps } from "./context.ts";
import type { ServedEndpoint } from "./serve.ts";

/** Serves a request for the key with this digest. The caller must have authorised the key's owner. */
export type ServeAs = (endpoint: ServedEndpoint, keyDigest: KeyDigest, connection: Connection) => Promise<Response>;

export function createServeAs(deps: ServeDeps, keyring: Pick<Keyring, "load">): ServeAs {
	return (endpoint, keyDigest, connection) =>
		endpoint.answer(deps, connection, async () => {
			const entry = await keyring.load(keyDigest);
			if (entry === null) throw invalidApiKey();
			checkKey(entry, deps.clock.wallMs());
			return entry;
		});
}

import type { Admission } from "../admission/admission.ts";
import { newRequestId } from "../base/id.ts";
import type { KeyUse } from "../keys/access.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import { type Connection, unpaidTurn } from "./connection.ts";
import { errorResponse, toFault } from "./error-body.ts";
import { jsonHeaders } from "./headers.ts";
import type { ServeDeps } from "./serve/context.ts";

export interface UnmeteredCall {
	readonly connection: Connection;
	readonly url: string;
	readonly key: KeyEntry;
	readonly requestId: string;
	/** Rejects if the key is no longer valid. For requests that change something after a body that takes hours. */
	checkAgain(): Promise<void>;
}

/** An endpoint that needs a key but no credit. `answer` returns JSON or a Response. "reads": for read-only keys too. */
type Unmetered = (answer: (call: UnmeteredCall) => unknown, use?: KeyUse) => (request: Request) => Promise<Response>;

export function createUnmeteredEndpoint(
	deps: Pick<ServeDeps, "authenticate" | "telemetry"> & {
		clients: Pick<ServeDeps["clients"], "bodyMemory">;
		admission: Pick<Admission, "checkOpen">;
		connectionOf(request: Request): Connection;
	},
): Unmetered {
	return (answer, use) => async (request) => {
		const { requestId } = newRequestId();
		let account: string | undefined;
		const connection = deps.connectionOf(request);
		try {
			const known = deps.authenticate(connection, use);
			const key = known instanceof Promise ? await deps.clients.bodyMemory.untilKnown(known, connection) : known;
			account = key.accountId;
			await unpaidTurn(account, request);
			// A call that changes something needs an instance that still receives revocations of keys.
			const checkOpen = () => {
				if (use !== "reads") deps.admission.checkOpen();
			};
			checkOpen();
			const checkAgain = async () => {
				await deps.authenticate(connection, use);
				checkOpen();
			};
			const said = await answer({ connection, url: request.url, key, requestId, checkAgain });
			if (said instanceof Response) return said;
			return new Response(JSON.stringify(said), { headers: jsonHeaders(requestId) });
		} catch (error) {
			const fault = toFault(error);
			deps.telemetry.stats.refuse(fault.code);
			// Bugs are logged here, because otherwise only the client would see them.
			if (fault.code === "internal_error")
				deps.telemetry.log.error("a request failed", {
					request: requestId,
					...(account === undefined ? {} : { account }),
					error,
				});
			return errorResponse(fault, requestId, connection.language);
		}
	};
}

/** The first `limit` rows as a list in OpenAI's format. */
export function pageOf<Row extends { readonly id: string }>(rows: readonly Row[], limit: number) {
	const data = rows.slice(0, limit);
	const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
	return { object: "list", data, first_id, last_id, has_more: rows.length > limit };
}

import type { Admission } from "../admission/admission.ts";
import { newRequestId } from "../base/id.ts";
import type { KeyUse } from "../keys/access.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { Connection } from "./connection.ts";
import { errorResponse, faultOf } from "./error-body.ts";
import { jsonHeaders } from "./headers.ts";
import type { ServeDeps } from "./serve/context.ts";

/** Who asks. */
export interface UnmeteredCaller {
	readonly requestId: string;
	/**
	 * Rejects unless the key is in force still: for what is kept after its body came, which no admission looks at. The key is
	 * found anew, since a body of hours outlasts what is known of one that rests.
	 */
	checkAgain(): Promise<void>;
}

/** An endpoint that costs nothing, needs a key, and works without credit. Its answer is JSON or a whole Response. */
export type Unmetered = (
	answer: (request: Request, key: KeyEntry, caller: UnmeteredCaller) => unknown,
	/** `reads`: keys that only read are let in, too. */
	use?: KeyUse,
) => (request: Request) => Promise<Response>;

export function createUnmetered(
	deps: Pick<ServeDeps, "authenticate" | "telemetry"> & {
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
			const key = known instanceof Promise ? await known : known;
			account = key.accountId;
			// What may do more than read is for instances that hear of revocations, as inference is.
			const checkOpen = () => {
				if (use !== "reads") deps.admission.checkOpen();
			};
			checkOpen();
			const checkAgain = async () => {
				await deps.authenticate(connection, use);
				checkOpen();
			};
			const said = await answer(request, key, { requestId, checkAgain });
			if (said instanceof Response) return said;
			return new Response(JSON.stringify(said), { headers: jsonHeaders(requestId) });
		} catch (error) {
			const fault = faultOf(error);
			deps.telemetry.stats.refuse(fault.code);
			// Else nobody but the client would know of a bug.
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

import { newRequestId } from "../base/id.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { Connection } from "./connection.ts";
import { errorResponse, faultOf } from "./error-body.ts";
import { jsonHeaders } from "./headers.ts";
import type { Authenticate } from "./serve/authenticate.ts";

/** An endpoint that costs nothing, needs a key, and works without credit. Its answer is JSON or a whole Response. */
export type Free = (
	answer: (request: Request, key: KeyEntry, requestId: string) => unknown,
) => (request: Request) => Promise<Response>;

export function createFree(deps: { authenticate: Authenticate; connectionOf(request: Request): Connection }): Free {
	return (answer) => async (request) => {
		const { requestId } = newRequestId();
		try {
			const known = deps.authenticate(deps.connectionOf(request));
			const key = known instanceof Promise ? await known : known;
			const said = await answer(request, key, requestId);
			if (said instanceof Response) return said;
			return new Response(JSON.stringify(said), { headers: jsonHeaders(requestId) });
		} catch (error) {
			return errorResponse(faultOf(error), requestId);
		}
	};
}

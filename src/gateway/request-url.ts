import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import { errorResponse } from "./error-body.ts";

/**
 * Turns away what has no address that can be parsed: the runtime makes it of the client's `Host`, which may be anything.
 * Behind this, `new URL(request.url)` does not throw. Undefined for a request that is well.
 */
export function createUrlCheck(): (request: Request) => Response | undefined {
	/** What the last good address began with; clients come back under the same name. */
	let known = "";
	return ({ url }) => {
		if (known !== "" && url.startsWith(known)) return undefined;
		if (!URL.canParse(url)) {
			const fault = new Fault("invalid_request", "The Host header of the request is not valid.");
			return errorResponse(fault, newRequestId().requestId);
		}
		known = `${url.slice(0, url.indexOf("/", url.indexOf("://") + 3))}/`;
		return undefined;
	};
}

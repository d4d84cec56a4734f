import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import { errorResponse } from "./error-body.ts";

type Answer = Response | Promise<Response>;

/** What is answered under these paths to who names no host. */
export type Probes = Readonly<Record<"/livez" | "/readyz", () => Answer>>;

/**
 * Turns away what has no address that can be parsed: the runtime makes it of the client's `Host`, which may be anything.
 * Behind this, `new URL(request.url)` does not throw. Undefined for a request that is well.
 *
 * A probe is answered all the same: balancers ask by HTTP/1.0 and without a `Host` (`option httpchk` of HAProxy), and to
 * them a refusal means that nobody is there.
 */
export function createUrlCheck(probes: Probes): (request: Request) => Answer | undefined {
	/** What the last good address began with; clients come back under the same name. */
	let known = "";
	return ({ url, headers }) => {
		if (known !== "" && url.startsWith(known)) return undefined;
		if (!URL.canParse(url)) {
			const [path] = url.split("?", 1);
			if (!headers.get("host") && (path === "/livez" || path === "/readyz")) return probes[path]();
			const fault = new Fault("invalid_request", `The Host header of the request is not valid${zoneHint(headers)}.`);
			return errorResponse(fault, newRequestId().requestId);
		}
		known = `${url.slice(0, url.indexOf("/", url.indexOf("://") + 3))}/`;
		return undefined;
	};
}

/** A zone means something to its own machine alone, and is to be taken out of what is sent (RFC 6874); some clients leave it in. */
function zoneHint(headers: Headers): string {
	return /^\[[^\]]*%/.test(headers.get("host") ?? "")
		? ": an IPv6 address has no zone (%…) there. Use an address without one, or a name"
		: "";
}

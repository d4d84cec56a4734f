import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import { errorResponse } from "./error-body.ts";

type Answer = Response | Promise<Response>;

/** Probe paths, which are answered without a `Host` header. */
export type Probes = Readonly<Record<"/livez" | "/readyz", () => Answer>>;

/**
 * Refuses requests without a valid URL, which the runtime builds from the `Host` header; afterwards `new
 * URL(request.url)` does not throw. Returns undefined for a valid request. Probes are answered all the same: balancers
 * use HTTP/1.0 without `Host` (HAProxy's `option httpchk`) and would take a refusal for a dead server.
 */
export function createUrlCheck(probes: Probes): (request: Request) => Answer | undefined {
	/** Prefix of the last valid URL; clients repeat it. */
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

/** An IPv6 zone is local to the client's machine and must be removed (RFC 6874); some clients send it. */
function zoneHint(headers: Headers): string {
	return /^\[[^\]]*%/.test(headers.get("host") ?? "")
		? ": an IPv6 address has no zone (%…) there. Use an address without one, or a name"
		: "";
}

import { isSameSecret } from "../base/same-secret.ts";
import type { Config } from "../config.ts";
import { isLoopback } from "../gateway/client-address.ts";
import type { Connection } from "../gateway/connection.ts";

export type MetricsAccess = Pick<Config, "metricsToken" | "production">;

/** By the token where there is one; else, in production, from this machine alone, and not through a proxy on it. */
export function mayReadMetrics({ metricsToken, production }: MetricsAccess, { request, address }: Connection): boolean {
	const { headers } = request;
	if (metricsToken === null) {
		if (!production) return true;
		return isLoopback(address) && !headers.has("x-forwarded-for") && !headers.has("forwarded");
	}
	return isSameSecret(headers.get("authorization") ?? "", `Bearer ${metricsToken}`);
}

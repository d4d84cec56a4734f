import { t } from "./texts.tsx";
import type { RequestDetail } from "./views.ts";

/** How a request ended, in words. A record has an ending and a status, and a status may have several causes. */

const HOW_ENDED: Readonly<Record<string, string>> = {
	finished: t("The model finished its answer"),
	upstream_failed: t("The model's server failed"),
	upstream_died: t("The model's server broke off in the middle"),
	upstream_silent: t("The model's server fell silent"),
	client_left: t("The client left"),
	shutdown: t("The service was being restarted"),
	crashed: t("The instance of the service died"),
};

const REASONS: Readonly<Record<number, string>> = {
	499: t("The client closed the connection."),
	502: t("The model's server failed."),
	// No server is connected, all are busy, or this service is.
	503: t("No server for the model could take it just then."),
	504: t("The model's server did not answer in time."),
};

export function howEnded({ ending, status }: Pick<RequestDetail, "ending" | "status">): string {
	if (ending === "upstream_failed" && status === 503) return t("No server took it");
	return HOW_ENDED[ending] ?? ending.replaceAll("_", " ");
}

/** Why it failed, if more is known; a restart has the same status as a model without servers. */
export function failureReason({ ending, status }: Pick<RequestDetail, "ending" | "status">): string | undefined {
	return ending === "shutdown" ? undefined : REASONS[status];
}

export function basisText({ basis, ending }: Pick<RequestDetail, "basis" | "ending">): string {
	if (basis === "exact") return t("Exact: as counted by the model's server");
	if (basis === "recovered") return t("Recovered: settled after an instance of the service died");
	return ending === "client_left"
		? t("Estimated: the client left before the server had counted")
		: t("Estimated: the model's server gave no count that could be taken");
}

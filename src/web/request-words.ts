import type { RequestDetail } from "./api.ts";
import { t } from "./texts.tsx";

/** Labels for the endings of requests. A status alone may have several causes. */
export const ENDING_LABELS: Readonly<Record<string, string>> = {
	finished: t("Completed"),
	upstream_failed: t("Model server error"),
	upstream_died: t("Model server disconnected during the response"),
	upstream_silent: t("Model server stopped responding"),
	client_left: t("Client disconnected"),
	shutdown: t("Service restarted"),
	crashed: t("Service instance crashed"),
};

const REASONS: Readonly<Record<number, string>> = {
	499: t("The client closed the connection."),
	502: t("The model server failed."),
	// No server is connected, all servers are busy, or the gateway is busy.
	503: t("No server for this model was available."),
	504: t("The model server did not respond in time."),
};

export function endingText({ ending, status }: Pick<RequestDetail, "ending" | "status">): string {
	if (ending === "upstream_failed" && status === 503) return t("No server available");
	return ENDING_LABELS[ending] ?? ending.replaceAll("_", " ");
}

/** Why a request failed, if known. A service restart also has the status 503, so the ending is checked first. */
export function failureReason({ ending, status }: Pick<RequestDetail, "ending" | "status">): string | undefined {
	return ending === "shutdown" ? undefined : REASONS[status];
}

export function basisText({ basis, ending }: Pick<RequestDetail, "basis" | "ending">): string {
	if (basis === "exact") return t("Exact: counted by the model server");
	if (basis === "recovered") return t("Recovered: charged after a service instance crashed");
	return ending === "client_left"
		? t("Estimated: the client disconnected before the model server reported its count")
		: t("Estimated: the model server reported no valid count");
}

const ENDPOINTS: Readonly<Record<string, string>> = {
	chat: t("Chat completions"),
	completions: t("Completions"),
	embeddings: t("Embeddings"),
	transcription: t("Transcriptions"),
	image: t("Images"),
	rerank: t("Rerank"),
};

export const endpointName = (code: string): string => ENDPOINTS[code] ?? code;

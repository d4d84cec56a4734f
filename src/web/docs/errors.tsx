import type { ReactNode } from "react";
import { CodeBlock } from "../parts/code.tsx";
import { DataTable } from "../parts/table.tsx";
import { rich, t } from "../texts.tsx";

const ERRORS: readonly { status: string; codes: string; what: ReactNode }[] = [
	{
		status: "400",
		codes: "invalid_request, context_length_exceeded, unsupported_parameter",
		what: <>{rich("Mend the request; {code} names the field.", { code: <code>param</code> })}</>,
	},
	{
		status: "401",
		codes: "missing_api_key, invalid_api_key, api_key_revoked, api_key_expired",
		what: t("Use a key that is active."),
	},
	{
		status: "402",
		codes: "top_up_required, insufficient_quota, project_cap_exceeded, key_cap_exceeded",
		what: t(
			"Not to be sent again as it is. But for top_up_required the error says what is available, held and required, and, where a shorter answer would do, how many tokens would have fitted.",
		),
	},
	{
		status: "403",
		codes: "model_not_allowed, account_suspended, sign_in_required, project_archived, read_only_key",
		what: t(
			"The key's or its project's list of models does not have it, the account is suspended or nobody has signed in to it, the project was archived, or the key only reads.",
		),
	},
	{ status: "404", codes: "model_not_found, unsupported_mode, not_found", what: t("Take an id from GET /v1/models.") },
	{
		status: "409, 422",
		codes: "conflict, idempotency_mismatch, unprocessable_request",
		what: (
			<>
				{rich(
					"Not to be sent again as it is: the error says why. With {code}: the first request with this Idempotency-Key is still running; wait for it.",
					{ code: <code>retry-after</code> },
				)}
			</>
		),
	},
	{
		status: "405, 408, 413, 415, 416",
		codes: "method_not_allowed, request_timeout, payload_too_large, unsupported_media_type, range_not_satisfiable",
		what: t("The request itself is at fault."),
	},
	{
		status: "429",
		codes: "rate_limit_exceeded",
		what: (
			<>
				{rich(
					"A limit of your key, its project or your account, or too many wrong keys from your address. Wait for {code} seconds, then send it again.",
					{
						code: <code>retry-after</code>,
					},
				)}
			</>
		),
	},
	{
		status: "500",
		codes: "internal_error",
		what: t("A fault of the service. Send it again, and name the x-request-id if it stays."),
	},
	{
		status: "502, 504",
		codes: "upstream_error, upstream_timeout",
		what: t("The model's server failed. Send it again, a few times at most."),
	},
	{
		status: "503",
		codes: "service_unavailable, overloaded",
		what: (
			<>
				{rich(
					"No server for this model or service is connected. With {code}: a passing state, busy servers for instance; send it again.",
					{ code: <code>retry-after</code> },
				)}
			</>
		),
	},
];

/** Each on a line of its own, so that none is broken in two. */
function Codes({ names }: { names: string }) {
	return names.split(", ").map((name) => (
		<div key={name}>
			<code>{name}</code>
		</div>
	));
}

export function ErrorsSection() {
	return (
		<>
			<p>{t("Every failure has the same shape, and every answer an x-request-id. Name it when you ask for help.")}</p>
			<CodeBlock
				code={`HTTP/1.1 402 Payment Required
x-request-id: req_…

{ "error": { "message": "…", "type": "insufficient_quota", "param": null, "code": "insufficient_quota",
             "available_usd": "0.42", "held_usd": "0.10", "required_usd": "0.55", "affordable_max_tokens": 812 } }`}
			/>
			<DataTable
				label={t("Errors")}
				rows={ERRORS}
				rowKey={(row) => row.status}
				empty={null}
				columns={[
					{ label: t("Status"), lead: true, render: (row) => row.status },
					{ label: t("Code"), render: (row) => <Codes names={row.codes} /> },
					{ label: t("What to do"), render: (row) => row.what },
				]}
			/>
			<h2>{t("After the first byte")}</h2>
			<p>
				{rich(
					"A stream that has begun has spent its status. A failure then comes as an event with {code}, followed by the usage so far and {code2}. A stream that ends without {code3} was cut off.",
					{ code: <code>error</code>, code2: <code>[DONE]</code>, code3: <code>[DONE]</code> },
				)}
			</p>
			<h2>{t("What a failure costs")}</h2>
			<ul>
				<li>{t("Before the first token: nothing.")}</li>
				<li>{t("When the model's server fails in the middle: what was delivered.")}</li>
				<li>{t("When you leave: what was generated until then. Leaving before the first token costs nothing.")}</li>
			</ul>
			<h2>{t("Sending again")}</h2>
			<p>
				{rich("The header {code} says false where the status alone would mislead; the usual SDKs obey it.", {
					code: <code>x-should-retry</code>,
				})}
			</p>
		</>
	);
}

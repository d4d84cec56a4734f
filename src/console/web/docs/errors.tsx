import type { ReactNode } from "react";
import { CodeBlock } from "../parts/code.tsx";
import { DataTable } from "../parts/table.tsx";

const ERRORS: readonly { status: string; codes: string; what: ReactNode }[] = [
	{
		status: "400",
		codes: "invalid_request, context_length_exceeded, unsupported_parameter",
		what: (
			<>
				Mend the request; <code>param</code> names the field.
			</>
		),
	},
	{
		status: "401",
		codes: "missing_api_key, invalid_api_key, api_key_revoked, api_key_expired",
		what: "Use a key that is active.",
	},
	{
		status: "402",
		codes: "top_up_required, insufficient_quota, project_cap_exceeded, key_cap_exceeded",
		what: "Not to be sent again as it is. The error says what is available, held and required, and how many tokens would have fitted.",
	},
	{
		status: "403",
		codes: "model_not_allowed, account_suspended, project_archived, read_only_key",
		what: "The key's or its project's list of models does not have it, the account is suspended, or the project was archived.",
	},
	{ status: "404", codes: "model_not_found, unsupported_mode, not_found", what: "Take an id from GET /v1/models." },
	{
		status: "405, 408, 413, 415",
		codes: "method_not_allowed, request_timeout, payload_too_large, unsupported_media_type",
		what: "The request itself is at fault.",
	},
	{
		status: "429",
		codes: "rate_limit_exceeded",
		what: (
			<>
				A limit of your key or its project. Wait for <code>retry-after</code> seconds, then send it again.
			</>
		),
	},
	{
		status: "502, 504",
		codes: "upstream_error, upstream_timeout",
		what: "The model's server failed. Send it again, a few times at most.",
	},
	{
		status: "503",
		codes: "service_unavailable, overloaded",
		what: (
			<>
				No server for this model or service is connected. With <code>retry-after</code>: a passing state, busy servers
				for instance; send it again.
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
			<p>Every failure has the same shape, and every answer an x-request-id. Name it when you ask for help.</p>
			<CodeBlock
				code={`HTTP/1.1 402 Payment Required
x-request-id: req_…

{ "error": { "message": "…", "type": "insufficient_quota", "param": null, "code": "insufficient_quota",
             "available_usd": "0.42", "held_usd": "0.10", "required_usd": "0.55", "affordable_max_tokens": 812 } }`}
			/>
			<DataTable
				label="Errors"
				rows={ERRORS}
				rowKey={(row) => row.status}
				empty={null}
				columns={[
					{ label: "Status", lead: true, render: (row) => row.status },
					{ label: "Code", render: (row) => <Codes names={row.codes} /> },
					{ label: "What to do", render: (row) => row.what },
				]}
			/>
			<h2>After the first byte</h2>
			<p>
				A stream that has begun has spent its status. A failure then comes as an event with <code>error</code>, followed
				by the usage so far and <code>[DONE]</code>. A stream that ends without <code>[DONE]</code> was cut off.
			</p>
			<h2>What a failure costs</h2>
			<ul>
				<li>Before the first token: nothing.</li>
				<li>When the model's server fails in the middle: what was delivered.</li>
				<li>When you leave: what was generated until then. Leaving before the first token costs nothing.</li>
			</ul>
			<h2>Sending again</h2>
			<p>
				The header <code>x-should-retry</code> says true or false where the status alone would mislead; the usual SDKs
				obey it.
			</p>
		</>
	);
}

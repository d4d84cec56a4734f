import type { ReactNode } from "react";
import { maxUsd, subUsd, ZERO_USD } from "../../../money/nano-usd.ts";
import { formatCount } from "../format.ts";
import { Facts, Panel, Stat } from "../parts/page.tsx";
import { Notice } from "../parts/problem.tsx";
import { Refused } from "../parts/request-table.tsx";
import { Amount, Moment } from "../parts/text.tsx";
import { Link } from "../router.tsx";
import type { RefusedDetail } from "../views.ts";

type Shortage = NonNullable<RefusedDetail["shortage"]>;

/** A request that was turned away: why, and what to do about it. */
export function RefusedRequest({ row }: { row: RefusedDetail }) {
	return (
		<>
			{row.shortage === null ? <Notice kind="warn">{row.message}</Notice> : <ShortagePanel shortage={row.shortage} />}
			<div className="grid-even">
				<Panel title="What to do">{adviceOf(row)}</Panel>
				<Panel title="Request">
					<Facts items={factsOf(row)} />
				</Panel>
			</div>
		</>
	);
}

const WHOSE = {
	account: { lacking: "The account's credit", of: "of the account's credit" },
	project: { lacking: "The spending cap of the key's project", of: "under the project's cap" },
	key: { lacking: "The key's spending cap", of: "under the key's cap" },
} as const;

function ShortagePanel({ shortage }: { shortage: Shortage }) {
	const { availableNanoUsd, heldNanoUsd, requiredNanoUsd, affordableMaxTokens } = shortage;
	return (
		<>
			<Notice kind="warn">
				{`${WHOSE[shortage.limit].lacking} did not cover the most that this request could cost.`}
			</Notice>
			<Panel>
				<div className="stats">
					<Stat label="Available" value={<Amount nanoUsd={availableNanoUsd} />}>
						{WHOSE[shortage.limit].of}
					</Stat>
					<Stat label="Held" value={<Amount nanoUsd={heldNanoUsd} />}>
						by requests that were running
					</Stat>
					<Stat label="Needed" value={<Amount nanoUsd={requiredNanoUsd} />}>
						the most that it could cost
					</Stat>
					<Stat
						label="Missing"
						value={<Amount nanoUsd={maxUsd(ZERO_USD, subUsd(requiredNanoUsd, availableNanoUsd))} />}
					/>
					<Stat
						label="Would have fitted"
						value={affordableMaxTokens === null ? "–" : `${formatCount(affordableMaxTokens)} tokens`}
					>
						{affordableMaxTokens === null ? "not with this prompt" : <code>max_tokens: {affordableMaxTokens}</code>}
					</Stat>
				</div>
			</Panel>
		</>
	);
}

function adviceOf(row: RefusedDetail): ReactNode {
	if (row.shortage !== null) return <ShortageAdvice row={row} shortage={row.shortage} />;
	const advice = ADVICE[row.code];
	return (
		<p className="advice">{advice === undefined ? "Name the request's id when you ask for help." : advice(row)}</p>
	);
}

function ShortageAdvice({ row, shortage }: { row: RefusedDetail; shortage: Shortage }) {
	const { availableNanoUsd, heldNanoUsd, requiredNanoUsd, affordableMaxTokens } = shortage;
	return (
		<ul className="advice">
			{shortage.limit === "key" ? (
				<li>
					<Link to={`/keys/${row.keyId}`}>Raise the cap of {row.keyName}</Link>, or take it away.
				</li>
			) : shortage.limit === "project" ? (
				<li>Raise the cap of the key's project, or take it away.</li>
			) : (
				<li>
					<Link to="/credit">Top up the account</Link>.
				</li>
			)}
			{affordableMaxTokens !== null && (
				<li>
					Or ask for less: with <code>max_tokens</code> of {formatCount(affordableMaxTokens)} at the most it would have
					been admitted. What an answer does not use is given back.
				</li>
			)}
			{heldNanoUsd > 0 && availableNanoUsd + heldNanoUsd >= requiredNanoUsd && (
				<li>Or wait: what running requests hold and do not use is free again when they end.</li>
			)}
		</ul>
	);
}

const keyLink = (row: RefusedDetail, text: string) => <Link to={`/keys/${row.keyId}`}>{text}</Link>;
const modelsLink = <Link to="/models">the list of models</Link>;
const SEND_AGAIN = "It is a passing state: send the request again, after the seconds that retry-after names.";
const MEND = "Mend the request; the same one will be refused again.";

const ADVICE: Readonly<Record<string, (row: RefusedDetail) => ReactNode>> = {
	top_up_required: () => (
		<>
			<Link to="/credit">Make a first top-up</Link>; the key works as soon as it is confirmed.
		</>
	),
	sign_in_required: () => "An owner of the account signs in to this console once.",
	model_not_allowed: (row) => <>{keyLink(row, `Add the model to those of ${row.keyName}`)}, or use another key.</>,
	account_suspended: () => "Ask the operator of the service.",
	project_archived: () => (
		<>
			Use <Link to="/keys">a key</Link> of another project.
		</>
	),
	api_key_revoked: () => (
		<>
			Something still uses this key. Give it <Link to="/keys">another one</Link>.
		</>
	),
	api_key_expired: (row) => (
		<>
			{keyLink(row, `Change when ${row.keyName} expires`)}, or use <Link to="/keys">another key</Link>.
		</>
	),
	read_only_key: () => (
		<>
			This key only reads usage. Use <Link to="/keys">another key</Link> for requests.
		</>
	),
	model_not_found: () => <>Take an id from {modelsLink}.</>,
	unsupported_mode: () => <>Use the model's own endpoint, or another model from {modelsLink}.</>,
	rate_limit_exceeded: (row) => (
		<>
			Send fewer requests at a time, or {keyLink(row, `change the limits of ${row.keyName}`)}. SDKs wait and send them
			again by themselves.
		</>
	),
	overloaded: () => SEND_AGAIN,
	service_unavailable: () => SEND_AGAIN,
	request_timeout: () => "The body did not arrive in time. Send it again.",
	context_length_exceeded: () => "Shorten the prompt, lower max_tokens, or use a model with a longer context.",
	invalid_request: () => MEND,
	unsupported_parameter: () => MEND,
	payload_too_large: () => "Send less at once: fewer or smaller images, a shorter recording.",
	unsupported_media_type: () => MEND,
};

function factsOf(row: RefusedDetail): [string, ReactNode][] {
	const facts: [string, ReactNode][] = [
		["Time", <Moment key="time" atMs={row.atMs} form="log" />],
		["Answer", <Refused key="answer" row={{ ...row, repeats: 0 }} />],
		["Code", <code key="code">{row.code}</code>],
	];
	if (row.param !== null) facts.push(["Field", <code key="param">{row.param}</code>]);
	facts.push(
		["Model", row.model ?? "not read so far"],
		["Key", <Link key="key" to={`/keys/${row.keyId}`}>{`${row.keyName} …${row.keyLastFour}`}</Link>],
		["Endpoint", row.endpoint],
		["Cost", "nothing"],
	);
	if (row.repeats > 0) {
		facts.push([
			"Repeated",
			<span key="repeats">
				{formatCount(row.repeats)} more with this key and code until <Moment atMs={row.repeatedAtMs} form="log" />,
				counted and not listed
			</span>,
		]);
	}
	return facts;
}

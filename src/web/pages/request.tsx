import { Group, SimpleGrid } from "@mantine/core";
import type { ReactNode } from "react";
import { maxUsd, subUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { api, type RefusedDetail, type RequestDetail } from "../api.ts";
import { CostLines } from "../parts/account-tables.tsx";
import { DetailList, Empty, LoadState, Notice, Page, Panel, Stat } from "../parts/page.tsx";
import { RefusalStatus, RequestEnding } from "../parts/request-table.tsx";
import { Amount, CopyableId, Timestamp } from "../parts/text.tsx";
import { basisText, endingText, endpointName, failureReason } from "../request-words.ts";
import { useResource } from "../resource.ts";
import { Link, linkRenderer } from "../router.tsx";
import { useAccount, useSession } from "../session.tsx";
import { formatClock, formatCount, formatDuration, plural, rich, showUsdExact, t } from "../texts.tsx";

const STEPS: Readonly<Record<string, string>> = {
	admitted: t("Admitted"),
	first_token: t("First token"),
	ended: t("Ended"),
	settled: t("Settled"),
};

export default function RequestPage({ id }: { id: string }) {
	const account = useAccount();
	const { config } = useSession();
	const request = useResource(`request ${account.id} ${id}`, () => api.request(account.id, id));
	const found = request.data;
	if (request.error?.status === 404) {
		return (
			<Page title={t("Request")}>
				<Empty
					title={t("This account has no request with this id.")}
					action={<Link to="/requests">{t("All requests")}</Link>}
				>
					{config.refusalsKeptDays === 0
						? t(
								"The id is in the x-request-id header or in the response's id field. A request appears when it ends or is refused.",
							)
						: plural(
								config.refusalsKeptDays,
								{
									one: "The id is in the x-request-id header or in the response's id field. A request appears when it ends. A refused request is kept for a day.",
									other:
										"The id is in the x-request-id header or in the response's id field. A request appears when it ends. A refused request is kept for {count} days.",
								},
								{ count: config.refusalsKeptDays },
							)}
				</Empty>
			</Page>
		);
	}
	return (
		<Page title={t("Request")} lead={<CopyableId value={id} label={t("Copy the request's id")} />}>
			<LoadState of={request} height={320} />
			{found && (found.statusClass === "refused" ? <RefusedRequest row={found} /> : <Detail row={found} />)}
		</Page>
	);
}

function Detail({ row }: { row: RequestDetail }) {
	const reason = failureReason(row);
	return (
		<>
			<Panel>
				<div className="stats">
					<Stat label={t("Cost")} value={<Amount nanoUsd={row.costNanoUsd} />}>
						{rich("held {reserved}", { reserved: <Amount nanoUsd={row.reservedNanoUsd} /> })}
					</Stat>
					<Stat label={t("Tokens")} value={`${formatCount(row.promptTokens)} + ${formatCount(row.completionTokens)}`}>
						{t("prompt + completion")}
					</Stat>
					<Stat label={t("First token")} value={formatDuration(row.firstTokenMs)} />
					<Stat label={t("Duration")} value={formatDuration(row.durationMs)} />
					<Stat label={t("Speed")} value={speedText(row)} />
				</div>
			</Panel>
			{reason && <Notice kind="warn">{reason}</Notice>}
			{row.writtenOffNanoUsd > 0 && (
				<Notice>
					{rich("{writtenOff} of the cost exceeded your credit and was not charged.", {
						writtenOff: <Amount nanoUsd={row.writtenOffNanoUsd} />,
					})}
				</Notice>
			)}
			<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
				<Panel title={t("Request")}>
					<DetailList
						of={{
							[t("Model")]: <Link to={`/models/${row.model}`}>{row.model}</Link>,
							[t("Key")]: <Link to={`/keys/${row.keyId}`}>{`${row.keyName} …${row.keyLastFour}`}</Link>,
							[t("Endpoint")]: `${endpointName(row.endpoint)}${row.streamed ? t(", streamed") : ""}`,
							[t("Status")]: <RequestEnding row={row} />,
							[t("Result")]: endingText(row),
							[t("Token count")]: basisText(row),
							[t("Replica")]: row.replica ?? <span className="dim">{t("none")}</span>,
							[t("Response id")]: row.answerId && <CopyableId value={row.answerId} />,
							[t("Batch")]: row.batchId && <Link to={`/batches/${row.batchId}`}>{row.batchId}</Link>,
							[t("Rate card")]: <code>{row.rateCard}</code>,
						}}
					/>
				</Panel>
				<Panel title={t("Timeline")}>
					<DetailList
						of={Object.fromEntries(
							row.timeline.map(({ name, atMs, afterMs }) => [
								STEPS[name] ?? name,
								<Group key={name} gap="md" className="num">
									<span>+{formatDuration(afterMs)}</span>
									<span className="dim">
										{name === "admitted" ? <Timestamp atMs={atMs} form="log" /> : formatClock(atMs)}
									</span>
								</Group>,
							]),
						)}
					/>
				</Panel>
			</SimpleGrid>
			<Panel title={t("Cost breakdown")} flush>
				<CostLines lines={row.lines} />
				{row.linesTotalNanoUsd !== null && (
					<Group className="sum" justify="space-between">
						<span>{t("Total, rounded up to a billionth of a dollar")}</span>
						<strong className="num">{showUsdExact(row.linesTotalNanoUsd)}</strong>
					</Group>
				)}
			</Panel>
		</>
	);
}

function speedText(row: RequestDetail): string {
	const generatingMs = row.firstTokenMs === null ? row.durationMs : row.durationMs - row.firstTokenMs;
	if (row.completionTokens < 2 || generatingMs <= 0) return "–";
	return t("{count} tokens/s", { count: formatCount(Math.round((row.completionTokens / generatingMs) * 1000)) });
}

type Shortage = NonNullable<RefusedDetail["shortage"]>;

function RefusedRequest({ row }: { row: RefusedDetail }) {
	return (
		<>
			{row.shortage === null ? <Notice kind="warn">{row.message}</Notice> : <ShortagePanel shortage={row.shortage} />}
			<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
				<Panel title={t("What to do")}>{adviceOf(row)}</Panel>
				<Panel title={t("Request")}>
					<DetailList
						of={{
							[t("Time")]: <Timestamp atMs={row.atMs} form="log" />,
							[t("Response")]: <RefusalStatus row={{ ...row, repeats: 0 }} />,
							[t("Code")]: <code>{row.code}</code>,
							[t("Field")]: row.param && <code>{row.param}</code>,
							[t("Model")]: row.model ?? t("unknown"),
							[t("Key")]: keyLink(row, `${row.keyName} …${row.keyLastFour}`),
							[t("Endpoint")]: endpointName(row.endpoint),
							[t("Cost")]: t("Not charged"),
							[t("Repeated")]:
								row.repeats > 0 &&
								rich("{count} more with this code until {repeated}, not listed", {
									count: formatCount(row.repeats),
									repeated: <Timestamp atMs={row.repeatedAtMs} form="log" />,
								}),
						}}
					/>
				</Panel>
			</SimpleGrid>
		</>
	);
}

const WHOSE = {
	account: {
		lacking: t("The account's credit did not cover the maximum cost of this request."),
		of: t("of the account's credit"),
	},
	project: {
		lacking: t("The spending cap of the key's project did not cover the maximum cost of this request."),
		of: t("under the project's cap"),
	},
	key: {
		lacking: t("The key's spending cap did not cover the maximum cost of this request."),
		of: t("under the key's cap"),
	},
} as const;

function ShortagePanel({ shortage }: { shortage: Shortage }) {
	const { availableNanoUsd, heldNanoUsd, requiredNanoUsd, affordableMaxTokens } = shortage;
	return (
		<>
			<Notice kind="warn">{WHOSE[shortage.limit].lacking}</Notice>
			<Panel>
				<div className="stats">
					<Stat label={t("Available")} value={<Amount nanoUsd={availableNanoUsd} />} note={WHOSE[shortage.limit].of} />
					<Stat label={t("Held")} value={<Amount nanoUsd={heldNanoUsd} />} note={t("by requests that were running")} />
					<Stat label={t("Required")} value={<Amount nanoUsd={requiredNanoUsd} />} note={t("maximum cost")} />
					<Stat
						label={t("Shortfall")}
						value={<Amount nanoUsd={maxUsd(ZERO_USD, subUsd(requiredNanoUsd, availableNanoUsd))} />}
					/>
					<Stat
						label={t("Affordable output")}
						value={
							affordableMaxTokens === null ? "–" : t("{count} tokens", { count: formatCount(affordableMaxTokens) })
						}
					>
						{affordableMaxTokens === null ? t("none for this prompt") : <code>max_tokens: {affordableMaxTokens}</code>}
					</Stat>
				</div>
			</Panel>
		</>
	);
}

function adviceOf(row: RefusedDetail): ReactNode {
	if (row.shortage !== null) return <ShortageAdvice row={row} shortage={row.shortage} />;
	const advice = ADVICE[row.code];
	return <p>{advice === undefined ? t("Contact support with the request id.") : advice(row)}</p>;
}

function ShortageAdvice({ row, shortage }: { row: RefusedDetail; shortage: Shortage }) {
	const { availableNanoUsd, heldNanoUsd, requiredNanoUsd, affordableMaxTokens } = shortage;
	return (
		<ul>
			{shortage.limit === "key" ? (
				<li>
					{rich("{link}, or remove it.", {
						link: keyLink(row, t("Raise the cap of {keyName}", { keyName: row.keyName })),
					})}
				</li>
			) : shortage.limit === "project" ? (
				<li>{t("Raise or remove the cap of the key's project.")}</li>
			) : (
				<li>
					<Link to="/credit">{t("Top up the account")}</Link>.
				</li>
			)}
			{affordableMaxTokens !== null && (
				<li>
					{rich("Or lower {code} to {count} or less. Unused tokens are not charged.", {
						code: <code>max_tokens</code>,
						count: formatCount(affordableMaxTokens),
					})}
				</li>
			)}
			{heldNanoUsd > 0 && availableNanoUsd + heldNanoUsd >= requiredNanoUsd && (
				<li>{t("Or wait for running requests to finish: their unused credit is released.")}</li>
			)}
		</ul>
	);
}

const toKeys = { link: linkRenderer("/keys") };
const keyLink = (row: RefusedDetail, text: string) => <Link to={`/keys/${row.keyId}`}>{text}</Link>;
const modelsLink = <Link to="/models">{t("the list of models")}</Link>;
const SEND_AGAIN = t("Retry after the number of seconds in the retry-after header.");
const MEND = t("Correct the request before you send it again.");

const ADVICE: Readonly<Record<string, (row: RefusedDetail) => ReactNode>> = {
	top_up_required: () =>
		rich("<link>Make a first top-up</link>; the key works as soon as it is confirmed.", {
			link: linkRenderer("/credit"),
		}),
	sign_in_required: () => t("An owner of the account must sign in to the console once."),
	model_not_allowed: (row) =>
		rich("{link}, or use another key.", {
			link: keyLink(row, t("Allow the model for {keyName}", { keyName: row.keyName })),
		}),
	account_suspended: () => t("Contact the operator of the service."),
	project_archived: () => rich("Use <link>a key</link> of another project.", toKeys),
	api_key_revoked: () =>
		rich("An application still uses this revoked key. Switch it to <link>another key</link>.", toKeys),
	api_key_expired: (row) =>
		rich("{change}, or use <link>another key</link>.", {
			...toKeys,
			change: keyLink(row, t("Change the expiry of {keyName}", { keyName: row.keyName })),
		}),
	read_only_key: () => rich("This key is read-only. Use <link>another key</link> for requests.", toKeys),
	model_not_found: () => rich("Use a model id from {modelsLink}.", { modelsLink }),
	unsupported_mode: () => rich("Use the model's own endpoint, or another model from {modelsLink}.", { modelsLink }),
	rate_limit_exceeded: (row) =>
		rich("Send fewer or smaller requests, or {link} if the key's own limit was reached. SDKs retry automatically.", {
			link: keyLink(row, t("change the limits of {keyName}", { keyName: row.keyName })),
		}),
	overloaded: () => SEND_AGAIN,
	service_unavailable: () => SEND_AGAIN,
	request_timeout: () => t("The request body did not arrive in time. Send it again."),
	context_length_exceeded: () => t("Shorten the prompt, lower max_tokens, or use a model with a longer context."),
	invalid_request: () => MEND,
	unsupported_parameter: () => MEND,
	payload_too_large: () => t("Send a smaller request: fewer or smaller images, or a shorter recording."),
	unsupported_media_type: () => MEND,
};

import { useMemo, useState } from "react";
import { api, type LogFilter } from "../api.ts";
import { SearchField, useField } from "../parts/fields.tsx";
import { UsageFilters } from "../parts/filters.tsx";
import { ActButton, DownloadButton, Form, LinkButton } from "../parts/form.tsx";
import { Empty, Notice, Page, Panel } from "../parts/page.tsx";
import { RequestTable } from "../parts/request-table.tsx";
import { fromList } from "../parts/table.tsx";
import { readUsageFilter } from "../range.ts";
import { useList } from "../resource.ts";
import { Link, navigate, useQueryState } from "../router.tsx";
import { useAccount } from "../session.tsx";
import { rich, t } from "../texts.tsx";

const ROWS = 50;

export default function RequestsPage() {
	const account = useAccount();
	const [query, change] = useQueryState();
	const [nowMs, setNowMs] = useState(() => Date.now());
	const filter = useMemo(() => logFilterOf(query, nowMs), [query, nowMs]);
	const list = useList(`requests ${account.id} ${JSON.stringify(filter)}`, (after) =>
		api.requests(account.id, filter, { after, limit: ROWS }),
	);
	const filtered = ["model", "key", "project", "status", "batch"].some((name) => query.has(name));
	const batch = query.get("batch");
	function renew() {
		setNowMs(Date.now());
		// Reloads explicitly: most relative ranges start at midnight, so the new time leaves the filter unchanged.
		void list.reload();
	}

	return (
		<Page
			title={t("Requests")}
			lead={t(
				"Prompts and responses are not stored, except in batch files; the log keeps time, key, tokens and cost. The response to a request with an Idempotency-Key is kept for a day, encrypted with your API key.",
			)}
			aside={
				<>
					<ActButton label={t("Reload")} busy={list.loading && list.items !== undefined} onClick={renew} />
					<DownloadButton href={api.requestsCsvAddress(account.id, filter)} />
				</>
			}
		>
			<UsageFilters refused range={batch === null ? "7d" : "365d"} />
			{batch !== null && (
				<Notice>
					{rich("Only requests of batch {link}. <button>Show all requests</button>", {
						link: <Link to={`/batches/${encodeURIComponent(batch)}`}>{batch}</Link>,
						button: (inner) => <LinkButton onClick={() => change({ batch: null })}>{inner}</LinkButton>,
					})}
				</Notice>
			)}
			<Panel flush title={t("Log")} aside={<FindById />}>
				<RequestTable
					{...fromList(list)}
					empty={
						filtered ? (
							<Empty title={t("No request matches.")}>{t("Choose a longer time range or remove a filter.")}</Empty>
						) : (
							<Empty
								title={t("No requests in this time range.")}
								action={<Link to="/playground">{t("Try a model in the playground")}</Link>}
							>
								{t("Requests appear here a few seconds after they finish or are refused.")}
							</Empty>
						)
					}
				/>
			</Panel>
		</Page>
	);
}

function logFilterOf(query: URLSearchParams, nowMs: number): LogFilter {
	const { bucket: _, ...settled } = readUsageFilter(query, nowMs);
	const filter = query.get("status") === "refused" ? { ...settled, status: "refused" as const } : settled;
	const batch = query.get("batch");
	// Without a time range in the URL all lines of the batch are shown.
	if (batch !== null && !["range", "from"].some((name) => query.has(name)))
		return { ...filter, batch, from: null, to: null };
	// The filter has no end, so that a reload shows new requests.
	return query.has("to") ? { ...filter, batch } : { ...filter, batch, to: null };
}

function FindById() {
	const search = useField();
	const id = search.value.trim();
	return (
		<Form onSubmit={() => id !== "" && navigate(`/requests/${encodeURIComponent(id)}`)}>
			<SearchField w={230} label={t("Find a request by its id")} placeholder={t("Request id (press /)")} {...search} />
		</Form>
	);
}

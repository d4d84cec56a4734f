import { ActionIcon, Tooltip } from "@mantine/core";
import { useState } from "react";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { shownDecimals } from "../../money/shown-usd.ts";
import { useNow } from "../resource.ts";
import { formatAgo, formatDateTime, formatDay, formatLogTime, formatUtc, showUsd, showUsdExact, t } from "../texts.tsx";
import { Icon } from "./icons.tsx";

/** Components that format money, times and ids, so that all pages look the same. */

/** `decimals`: digits after the point for which space is reserved, so that points align in a column. */
export function Amount({ nanoUsd, sign, decimals }: { nanoUsd: NanoUsd; sign?: boolean; decimals?: number }) {
	const missing = decimals === undefined ? 0 : decimals - shownDecimals(nanoUsd);
	return (
		<span className="num" title={showUsdExact(nanoUsd)}>
			{sign && nanoUsd > 0 ? "+" : ""}
			{showUsd(nanoUsd)}
			{missing > 0 && <span className="pad" data-digits={"0".repeat(missing)} aria-hidden="true" />}
		</span>
	);
}

/** A long name, cut off if other columns need the space. Shown completely on hover and in the narrow layout. */
export function TruncatedText({ text, title = text }: { text: string; title?: string }) {
	return (
		<span className="clip" title={title}>
			{text}
		</span>
	);
}

/** A time in the browser's time zone, and in UTC on hover. */
export function Timestamp({ atMs, form = "full" }: { atMs: number | null; form?: "full" | "log" }) {
	if (atMs === null) return <span className="dim">–</span>;
	return (
		<time className="num" dateTime={new Date(atMs).toISOString()} title={formatUtc(atMs)}>
			{form === "log" ? formatLogTime(atMs) : formatDateTime(atMs)}
		</time>
	);
}

export function Day({ atMs }: { atMs: number }) {
	return (
		<time className="num" dateTime={new Date(atMs).toISOString().slice(0, 10)} title={t("A day in UTC")}>
			{formatDay(atMs)}
		</time>
	);
}

export function RelativeTime({ atMs, never = t("never") }: { atMs: number | null; never?: string }) {
	const now = useNow();
	if (atMs === null) return <span className="dim">{never}</span>;
	return (
		<time className="num" dateTime={new Date(atMs).toISOString()} title={formatUtc(atMs)}>
			{formatAgo(atMs, now)}
		</time>
	);
}

const OUTCOMES = {
	copied: { says: t("Copied"), icon: "check", shownMs: 1_500 },
	refused: { says: t("The browser blocked copying."), icon: "warning", shownMs: 4_000 },
} as const;

export function CopyButton({ text, label }: { text: string; label: string }) {
	const [outcome, setOutcome] = useState<keyof typeof OUTCOMES>();
	async function copy() {
		const next = (await copyText(text)) ? "copied" : "refused";
		setOutcome(next);
		setTimeout(() => setOutcome(undefined), OUTCOMES[next].shownMs);
	}
	const said = outcome === undefined ? label : OUTCOMES[outcome].says;
	return (
		// Opens the tooltip without hovering if copying failed.
		<Tooltip label={said} withArrow openDelay={300} {...(outcome === "refused" ? { opened: true } : {})}>
			<ActionIcon variant="subtle" color="gray" size="sm" aria-label={said} onClick={() => void copy()}>
				<Icon name={outcome === undefined ? "copy" : OUTCOMES[outcome].icon} />
			</ActionIcon>
		</Tooltip>
	);
}

export function CopyableId({ value, label = t("Copy") }: { value: string; label?: string }) {
	return (
		<span className="id">
			<code>{value}</code>
			<CopyButton text={value} label={label} />
		</span>
	);
}

/** True if the text was copied. Browsers may refuse the clipboard API: then copies a selection. */
async function copyText(text: string): Promise<boolean> {
	const isWritten = await navigator.clipboard?.writeText(text).then(
		() => true,
		() => false,
	);
	if (isWritten) return true;
	const area = document.createElement("textarea");
	area.value = text;
	area.className = "offscreen";
	(document.activeElement?.closest("[role=dialog]") ?? document.body).append(area);
	area.select();
	const isCopied = document.execCommand("copy");
	area.remove();
	return isCopied;
}

import type { ReactNode } from "react";
import { useId } from "react";
import { brand } from "../brand.ts";
import { stateText } from "../labels.ts";

/** The frame of a page: its title, its actions, its panels. */
export function Page(props: {
	title: string;
	aside?: ReactNode;
	lead?: ReactNode;
	children: ReactNode;
	narrow?: boolean;
}) {
	return (
		<div className={props.narrow ? "page page-narrow" : "page"}>
			<title>{`${props.title} · ${brand.name}`}</title>
			<header className="page-head">
				<div>
					<h1>{props.title}</h1>
					{props.lead && <p className="dim">{props.lead}</p>}
				</div>
				{props.aside && <div className="page-aside">{props.aside}</div>}
			</header>
			{props.children}
		</div>
	);
}

export function Panel(props: {
	title?: ReactNode;
	aside?: ReactNode;
	children: ReactNode;
	flush?: boolean;
	className?: string;
}) {
	const id = useId();
	return (
		<section
			className={`panel${props.flush ? " panel-flush" : ""}${props.className ? ` ${props.className}` : ""}`}
			aria-labelledby={props.title ? id : undefined}
		>
			{(props.title || props.aside) && (
				<div className="panel-head">
					{props.title && <h2 id={id}>{props.title}</h2>}
					{props.aside && <div className="panel-aside">{props.aside}</div>}
				</div>
			)}
			<div className="panel-body">{props.children}</div>
		</section>
	);
}

/** One figure with its name; `children` stands below in small type. */
export function Stat({ label, value, children }: { label: string; value: ReactNode; children?: ReactNode }) {
	return (
		<div className="stat">
			<div className="stat-label">{label}</div>
			<div className="stat-value num">{value}</div>
			{children && <div className="small dim">{children}</div>}
		</div>
	);
}

/** Names and values, one to a line. */
export function Facts({ items }: { items: readonly (readonly [string, ReactNode])[] }) {
	return (
		<dl className="facts">
			{items.map(([name, value]) => (
				<div key={name}>
					<dt>{name}</dt>
					<dd>{value}</dd>
				</div>
			))}
		</dl>
	);
}

/** The first letter large. */
export const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

const TONES: Readonly<Record<string, string>> = {
	ok: "ok",
	active: "ok",
	confirmed: "ok",
	connected: "ok",
	live: "ok",
	up: "ok",
	closed: "ok",
	healthy: "ok",
	exact: "ok",
	pending: "warn",
	half_open: "warn",
	"half-open": "warn",
	draining: "warn",
	unknown: "warn",
	estimated: "warn",
	recovered: "warn",
	left: "warn",
	starting: "warn",
	silent: "warn",
	failed: "bad",
	unavailable: "bad",
	revoked: "off",
	expired: "off",
	ended: "off",
	rejected: "off",
	refunded: "off",
	disputed: "bad",
	suspended: "bad",
	down: "bad",
	open: "bad",
	dead: "bad",
	unhealthy: "bad",
};

/** A word with a mark before it; the word says it, the colour only helps. */
export function State({ value, label, tone }: { value: string; label?: string; tone?: "ok" | "warn" | "bad" | "off" }) {
	return <span className={`state state-${tone ?? TONES[value] ?? "off"}`}>{label ?? stateText(value)}</span>;
}

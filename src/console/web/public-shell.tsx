import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { brand } from "./brand.ts";
import { SchemeSwitch } from "./parts/scheme-switch.tsx";
import { Link, usePlace } from "./router.tsx";
import { useSession } from "./session.tsx";
import { Brand } from "./shell.tsx";
import { Shortcuts } from "./shortcuts.tsx";

const PLACES = [
	["/models", "Models"],
	["/docs", "Docs"],
] as const;

/** Where the operator of the service can be reached, and what he says of it. */
function BrandLinks() {
	const { support, terms, privacy, imprint } = brand;
	const links = [
		["Support", support],
		["Terms", terms?.url ?? null],
		["Privacy", privacy],
		["Imprint", imprint],
	] as const;
	return links.map(
		([label, href]) =>
			href !== null && (
				<a key={label} href={href}>
					{label}
				</a>
			),
	);
}

/** The frame for visitors. */
export function PublicShell({ children }: { children: ReactNode }) {
	const { path } = usePlace();
	const { config } = useSession();
	return (
		<>
			<a className="skip" href="#main">
				Skip to the page
			</a>
			<header className="public-top">
				<Brand to="/" />
				<nav aria-label="Main">
					{PLACES.map(([to, label]) => (
						<Link key={to} to={to} aria-current={path === to || path.startsWith(`${to}/`) ? "page" : undefined}>
							{label}
						</Link>
					))}
					<a href="/status">Status</a>
				</nav>
				<div className="row">
					<Button component={Link} to="/sign-in" variant="default" size="xs">
						Sign in
					</Button>
					{config.signUp && (
						<Button component={Link} to="/sign-up" size="xs">
							Sign up
						</Button>
					)}
				</div>
			</header>
			<main className="main" id="main" tabIndex={-1}>
				{children}
			</main>
			<footer className="foot">
				<span>Prepaid inference on open models.</span>
				<Link to="/docs/errors">Errors</Link>
				<Link to="/docs/limits">Limits</Link>
				<a href="/status">Status</a>
				<BrandLinks />
				<div className="foot-scheme">
					<SchemeSwitch />
				</div>
			</footer>
			<Shortcuts />
		</>
	);
}

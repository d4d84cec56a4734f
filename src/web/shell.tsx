import { ActionIcon, Drawer, Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactNode } from "react";
import { useEffect } from "react";
import { brand } from "./brand.ts";
import type { Destination } from "./navigation.ts";
import { destinationsFor, isCurrent, OPERATOR_DESTINATIONS } from "./navigation.ts";
import { Icon } from "./parts/icons.tsx";
import { Problem } from "./parts/problem.tsx";
import { SchemeSwitch } from "./parts/scheme-switch.tsx";
import { useAction } from "./resource.ts";
import { Link, usePlace } from "./router.tsx";
import { useSession } from "./session.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { t } from "./texts.tsx";

/** The frame around every page of a signed-in viewer: navigation at the side, on narrow screens in a drawer. */
export function Shell({ children }: { children: ReactNode }) {
	const { config } = useSession();
	const [open, drawer] = useDisclosure(false);
	const { path } = usePlace();
	// biome-ignore lint/correctness/useExhaustiveDependencies: closing follows the path, nothing else
	useEffect(() => drawer.close(), [path]);
	return (
		<div className="shell">
			<a className="skip" href="#main">
				{t("Skip to the page")}
			</a>
			<div className="side">
				<nav className="side-inner" aria-label={t("Main")}>
					<Side />
				</nav>
			</div>
			<section className="top" aria-label={t("Site")}>
				<ActionIcon variant="subtle" color="gray" aria-label={t("Open the menu")} onClick={drawer.open}>
					<Icon name="menu" />
				</ActionIcon>
				<Brand to="/overview" />
				{/* The menu, which says what of it is made up, is closed here. */}
				{config.demo && <p className="demo-mark">{t("Demo")}</p>}
			</section>
			<Drawer
				opened={open}
				onClose={drawer.close}
				size={280}
				title={t("Menu")}
				closeButtonProps={{ "aria-label": t("Close the menu") }}
			>
				<nav aria-label={t("Main")}>
					<Side />
				</nav>
			</Drawer>
			<main className="main" id="main" tabIndex={-1}>
				{children}
			</main>
			<Shortcuts />
		</div>
	);
}

export function Brand({ to }: { to: string }) {
	return (
		<Link to={to} className="brand">
			{brand.logoUrl === null ? <OurMark /> : <img src={brand.logoUrl} alt="" height={22} />}
			{brand.name}
		</Link>
	);
}

function OurMark() {
	return (
		<svg
			width="18"
			height="18"
			viewBox="0 0 18 18"
			fill="none"
			stroke="currentColor"
			strokeWidth="2"
			aria-hidden="true"
		>
			<path d="M3 16V5M3 7.5h12M9 7.5v3.5M15 7.5v3.5" strokeLinecap="round" />
			<circle cx="3" cy="3.5" r="1.5" />
		</svg>
	);
}

function Side() {
	const { me, config } = useSession();
	return (
		<>
			<div className="side-head">
				<Brand to="/overview" />
				{config.demo && <p className="demo-mark">{t("Demo: play money, and a week of usage that was made up.")}</p>}
				<AccountMenu />
			</div>
			<div className="nav">
				<Destinations items={destinationsFor(me?.account?.role)} />
				{me?.user.operator && (
					<>
						<div className="nav-title">{t("Operator")}</div>
						<Destinations items={OPERATOR_DESTINATIONS} />
					</>
				)}
			</div>
			<div className="side-foot">
				<SchemeSwitch />
				<UserMenu />
			</div>
		</>
	);
}

function Destinations({ items }: { items: readonly Destination[] }) {
	const { path } = usePlace();
	return items.map((item) =>
		item.apart ? (
			<a key={item.to} href={item.to}>
				<Icon name={item.icon} />
				{item.label}
			</a>
		) : (
			<Link key={item.to} to={item.to} aria-current={isCurrent(item.to, path) ? "page" : undefined}>
				<Icon name={item.icon} />
				{item.label}
			</Link>
		),
	);
}

function AccountMenu() {
	const { me, chooseAccount } = useSession();
	const choose = useAction(chooseAccount);
	const account = me?.account;
	if (!account || me.accounts.length < 2) return null;
	return (
		<>
			<Menu width="target" shadow="sm">
				<Menu.Target>
					<button type="button" className="account-button" aria-label={t("Account: {name}", { name: account.name })}>
						<span className="clip">{account.name}</span>
						<Icon name="chevron" />
					</button>
				</Menu.Target>
				<Menu.Dropdown>
					<Menu.Label>{t("Account")}</Menu.Label>
					{me.accounts.map((item) => (
						<Menu.Item
							key={item.id}
							onClick={() => void choose.run(item.id)}
							rightSection={item.id === account.id ? <Icon name="check" /> : undefined}
						>
							{item.name}
						</Menu.Item>
					))}
				</Menu.Dropdown>
			</Menu>
			{choose.error && <Problem error={choose.error} />}
		</>
	);
}

function UserMenu() {
	const { me, signOut } = useSession();
	const leave = useAction(signOut);
	if (!me) return null;
	return (
		<>
			{leave.error && <Problem error={leave.error} />}
			<Menu width={200} position="top-start" shadow="sm">
				<Menu.Target>
					<button type="button" className="user-button" aria-label={t("You: {email}", { email: me.user.email })}>
						<Icon name="user" />
						<span className="clip">{me.user.email}</span>
					</button>
				</Menu.Target>
				<Menu.Dropdown>
					<Menu.Item component={Link} to="/settings">
						{t("Settings")}
					</Menu.Item>
					<Menu.Item onClick={() => void leave.run()}>{t("Sign out")}</Menu.Item>
				</Menu.Dropdown>
			</Menu>
		</>
	);
}

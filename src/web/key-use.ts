import type { KeyView } from "./api.ts";

type Used = Pick<KeyView, "state" | "readsOnly" | "projectState">;

/** True if the key's project is archived: then all requests of the key are refused, even if the key is active. */
export const isProjectArchived = ({ state, projectState }: Pick<Used, "state" | "projectState">): boolean =>
	state === "active" && projectState === "archived";

/** True if requests with this key are accepted. */
export const canSend = (key: Used): boolean => key.state === "active" && !isProjectArchived(key) && !key.readsOnly;

-- Whether a caller may see and give back a reservation: by its token, or as the account that bought it. Who brings
-- neither is the operator.
local function is_owner(owner_token, owner_account, token, account)
  if token == '' and account == '' then return true end
  return owner_token == token or (account ~= '' and owner_account == account)
end

// Checks Jari's access tokens in nginx, for auth_request: jari.conf beside this file shows how. njs 0.7.9 or newer.
export default { check };

const RS256 = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };

// 204 and who buys, where the token says it, or 401.
async function check(r) {
    try {
        const claims = await verified(r);
        r.headersOut['X-Jari-Account'] = claims.account || '';
        r.return(204);
    } catch (error) {
        r.headersOut['WWW-Authenticate'] = 'Bearer';
        r.log(`no good access token: ${error.message}`);
        r.return(401);
    }
}

async function verified(r) {
    const token = /^Bearer +([\w-]+)\.([\w-]+)\.([\w-]+) *$/i.exec(r.headersIn.Authorization || '');
    if (!token) throw new Error('none');
    const header = JSON.parse(Buffer.from(token[1], 'base64url').toString());
    const signature = Buffer.from(token[3], 'base64url');
    // Whatever the header says of an algorithm, this is the one.
    const published = await jwk(r, header.kid);
    const key = await crypto.subtle.importKey('spki', spki(published), RS256, false, ['verify']);
    const isOurs = await crypto.subtle.verify(RS256, key, signature, `${token[1]}.${token[2]}`);
    if (!isOurs) throw new Error('another signature');
    const claims = JSON.parse(Buffer.from(token[2], 'base64url').toString());
    if (claims.iss !== r.variables.jari_issuer) throw new Error('another issuer');
    if (!Array.isArray(claims.aud) || !claims.aud.includes(r.variables.jari_event)) throw new Error('another event');
    if (!(claims.exp > Date.now() / 1000)) throw new Error('over');
    return claims;
}

// The published key of that name; nginx caches the answer.
async function jwk(r, kid) {
    const reply = await r.subrequest('/_jari_keys');
    if (reply.status !== 200) throw new Error(`the keys cannot be read: ${reply.status}`);
    const found = JSON.parse(reply.responseText).keys.filter(key => key.kid === kid && key.kty === 'RSA');
    if (found.length !== 1) throw new Error('another key');
    return found[0];
}

// SubjectPublicKeyInfo (RFC 5280) of an RSA key: before njs 0.7.10, importKey reads no JWK.
function spki(jwk) {
    const rsa = Buffer.from('300d06092a864886f70d0101010500', 'hex');
    const key = der(0x30, [number(jwk.n), number(jwk.e)]);
    return der(0x30, [rsa, der(0x03, [Buffer.from([0]), key])]);
}

function number(text) {
    const bytes = Buffer.from(text, 'base64url');
    return der(0x02, bytes[0] < 0x80 ? [bytes] : [Buffer.from([0]), bytes]);
}

function der(tag, parts) {
    const body = Buffer.concat(parts);
    const n = body.length;
    const length = n < 0x80 ? [n] : n < 0x100 ? [0x81, n] : [0x82, n >> 8, n & 0xff];
    return Buffer.concat([Buffer.from([tag].concat(length)), body]);
}
